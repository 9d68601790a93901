package main

import (
	"context"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/util/workqueue"
)

// Parts of k8s.io/apiserver/pkg/util/flowcontrol that it does not export, reached by their link names, so that what we
// compare with is the original code itself. Argument types are laid out as the originals'.

type allocProblemItem struct {
	target     float64
	lowerBound float64
	upperBound float64
}

type fsStatusUpdate struct {
	flowSchema *flowcontrolv1.FlowSchema
	condition  flowcontrolv1.FlowSchemaCondition
	oldValue   flowcontrolv1.FlowSchemaCondition
}

//go:linkname computeConcurrencyAllocation k8s.io/apiserver/pkg/util/flowcontrol.computeConcurrencyAllocation
func computeConcurrencyAllocation(requiredSum int, classes []allocProblemItem) ([]float64, float64, error)

//go:linkname matchesFlowSchema k8s.io/apiserver/pkg/util/flowcontrol.matchesFlowSchema
func matchesFlowSchema(digest utilflowcontrol.RequestDigest, flowSchema *flowcontrolv1.FlowSchema) bool

//go:linkname hashFlowID k8s.io/apiserver/pkg/util/flowcontrol.hashFlowID
func hashFlowID(fsName, fDistinguisher string) uint64

type droppedRequestsTracker struct{ _ [1]byte }

//go:linkname newDroppedRequestsTracker k8s.io/apiserver/pkg/util/flowcontrol.newDroppedRequestsTracker
func newDroppedRequestsTracker(now func() time.Time) *droppedRequestsTracker

//go:linkname recordDroppedRequest k8s.io/apiserver/pkg/util/flowcontrol.(*droppedRequestsTracker).RecordDroppedRequest
func recordDroppedRequest(t *droppedRequestsTracker, plName string)

//go:linkname getRetryAfter k8s.io/apiserver/pkg/util/flowcontrol.(*droppedRequestsTracker).GetRetryAfter
func getRetryAfter(t *droppedRequestsTracker, plName string) int64

//go:linkname lockAndDigestConfigObjects k8s.io/apiserver/pkg/util/flowcontrol.(*configController).lockAndDigestConfigObjects
func lockAndDigestConfigObjects(c unsafe.Pointer, pls []*flowcontrolv1.PriorityLevelConfiguration, fss []*flowcontrolv1.FlowSchema) []fsStatusUpdate

//go:linkname updateBorrowing k8s.io/apiserver/pkg/util/flowcontrol.(*configController).updateBorrowing
func updateBorrowing(c unsafe.Pointer)

//go:linkname maybeReap k8s.io/apiserver/pkg/util/flowcontrol.(*configController).maybeReap
func maybeReap(c unsafe.Pointer, plName string)

//go:linkname startRequest k8s.io/apiserver/pkg/util/flowcontrol.(*configController).startRequest
func startRequest(c unsafe.Pointer, ctx context.Context, rd utilflowcontrol.RequestDigest,
	noteFn func(fs *flowcontrolv1.FlowSchema, pl *flowcontrolv1.PriorityLevelConfiguration, flowDistinguisher string),
	workEstimator func() fcrequest.WorkEstimate,
	queueNoteFn fq.QueueNoteFn) (fs *flowcontrolv1.FlowSchema, pl *flowcontrolv1.PriorityLevelConfiguration, isExempt bool, req fq.Request, startWaitingTime time.Time)

// controller is an original configController and a look into its fields.
type controller struct {
	iface   utilflowcontrol.Interface
	pointer unsafe.Pointer
	fields  reflect.Value
}

func openController(iface utilflowcontrol.Interface) controller {
	value := reflect.ValueOf(iface)
	return controller{iface: iface, pointer: value.UnsafePointer(), fields: value.Elem()}
}

func field(of reflect.Value, name string) reflect.Value {
	f := of.FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// reloadWanted takes what has asked for the configuration objects to be read again.
func (c controller) reloadWanted() bool {
	queue := field(c.fields, "configQueue").Interface().(workqueue.TypedRateLimitingInterface[int])
	wanted := false
	for queue.Len() > 0 {
		item, _ := queue.Get()
		queue.Done(item)
		wanted = true
	}
	return wanted
}

type levelState struct {
	Name      string  `json:"name"`
	Quiescing bool    `json:"quiescing,omitempty"`
	Nominal   int     `json:"nominal"`
	Min       int     `json:"min"`
	Max       int     `json:"max"`
	Current   int     `json:"current"`
	Smoothed  float64 `json:"smoothed,omitempty"`
	High      int     `json:"high,omitempty"`
	queues    fq.QueueSet
}

func (c controller) levels() []levelState {
	states := field(c.fields, "priorityLevelStates")
	var all []levelState
	for _, key := range states.MapKeys() {
		state := states.MapIndex(key).Elem()
		integer := func(name string) int { return int(field(state, name).Int()) }
		stats := field(state, "seatDemandStats")
		all = append(all, levelState{
			Name:      key.String(),
			Quiescing: field(state, "quiescing").Bool(),
			Nominal:   integer("nominalCL"),
			Min:       integer("minCL"),
			Max:       integer("maxCL"),
			Current:   integer("currentCL"),
			Smoothed:  field(stats, "smoothed").Float(),
			High:      int(field(stats, "highWatermark").Int()),
			queues:    field(state, "queues").Interface().(fq.QueueSet),
		})
	}
	return all
}

// halfway says whether some limit lies halfway between two whole numbers. The original then rounds it up or down by
// chance, since it sums over a Go map.
func halfway(levels []levelState) bool {
	var items []allocProblemItem
	sum := 0
	for _, l := range levels {
		sum += l.Nominal
		if l.Name != flowcontrolv1.PriorityLevelConfigurationNameExempt {
			low := float64(max(l.Min, min(l.Nominal, l.High)))
			items = append(items, allocProblemItem{target: max(low, l.Smoothed), lowerBound: low, upperBound: float64(l.Max)})
		}
	}
	seats, _, err := computeConcurrencyAllocation(sum, items)
	return err == nil && slices.ContainsFunc(seats, func(s float64) bool {
		return math.Abs(s-math.Floor(s)-0.5) < 1e-6
	})
}

func level(name string, spec flowcontrolv1.PriorityLevelConfigurationSpec) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func schema(name string, spec flowcontrolv1.FlowSchemaSpec) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// queueSetTotals reads waiting, executing, seats in use and seats waiting of an original queueSet.
type queueSetTotals struct{ totals [4]*int }

func openQueueSet(set fq.QueueSet) queueSetTotals {
	fields := reflect.ValueOf(set).Elem()
	var t queueSetTotals
	for i, name := range []string{"totRequestsWaiting", "totRequestsExecuting", "totSeatsInUse", "totSeatsWaiting"} {
		t.totals[i] = field(fields, name).Addr().Interface().(*int)
	}
	return t
}
