package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"syscall"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/utils/ptr"
)

// benchmark is what test/bench/flowcontrol.ts asks for and does itself, too.
type benchmark struct {
	Queues           int   `json:"queues"`
	HandSize         int   `json:"handSize"`
	QueueLengthLimit int   `json:"queueLengthLimit"`
	Seats            int   `json:"seats"`
	Outstanding      int   `json:"outstanding"` // requests executing and waiting
	Flows            int   `json:"flows"`
	Requests         int   `json:"requests"`
	StepNS           int64 `json:"stepNs"`
}

// runBenchmark times the original, nanoseconds of processor per request: classify, enqueue, dispatch, finish. There are
// always so many requests outstanding; the one that was dispatched first finishes, and the next flow's request arrives. The
// original's log is silent; its goroutines and metrics, which it would be slower with, are left out.
func runBenchmark(b benchmark) float64 {
	clock := newStepClock()
	c := newController(clock, b.Seats)
	limited := &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To(int32(1_000_000)), BorrowingLimitPercent: ptr.To(int32(0)),
		LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{
			Queues: int32(b.Queues), HandSize: int32(b.HandSize), QueueLengthLimit: int32(b.QueueLengthLimit)}}}
	any := []string{"*"}
	lockAndDigestConfigObjects(c.pointer,
		[]*flowcontrolv1.PriorityLevelConfiguration{level("bench", flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: limited})},
		[]*flowcontrolv1.FlowSchema{schema("bench", flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "bench"}, MatchingPrecedence: 100,
			DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "system:authenticated"}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: any, APIGroups: any, Resources: any, Namespaces: any}},
			}}})})
	users := make([]attributes, b.Flows)
	for i := range users {
		users[i] = attributes{User: "user-" + itoa(uint64(i)), Groups: []string{"system:authenticated"}, Verb: "get", IsResource: true,
			APIGroup: "serving.knative.dev", Resource: "services", Namespace: "ns"}
	}
	type held struct{ request fq.Request }
	running := make([]*held, 0, 2*b.Outstanding+b.Requests)
	next := 0
	nothing := func() {}
	ctx := context.Background()
	one := func() fcrequest.WorkEstimate { return fcrequest.WorkEstimate{InitialSeats: 1} }
	note := func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string) {}
	now := int64(0)
	begin := func(i int) {
		h := &held{}
		a := users[i*7919%b.Flows]
		_, _, _, request, _ := startRequest(c.pointer, ctx, a.digest(), note, one, func(inQueue bool) {
			if !inQueue {
				running = append(running, h)
			}
		})
		if request == nil {
			panic("rejected")
		}
		h.request = request
	}
	for i := range b.Outstanding {
		begin(i)
	}
	turn := func(i int) {
		now += b.StepNS
		clock.set(now)
		h := running[next]
		running[next] = nil
		next++
		h.request.Finish(nothing)
		begin(i)
	}
	for i := range b.Requests / 4 {
		turn(i)
	}
	runtime.GC()
	return cpuPerRequest(b.Requests, turn)
}

// cpuPerRequest is the processor time of the whole process, collection of garbage included: on a shared machine a clock on
// the wall would measure the neighbours.
func cpuPerRequest(requests int, turn func(int)) float64 {
	used := func() float64 {
		var usage syscall.Rusage
		must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return float64(usage.Utime.Nano() + usage.Stime.Nano())
	}
	started := used()
	for i := range requests {
		turn(i)
	}
	return (used() - started) / float64(requests)
}

// runClassification times the original's search through schemas of which only the last matches.
func runClassification(schemas, requests int) float64 {
	any := []string{"*"}
	var all []*flowcontrolv1.FlowSchema
	for i := range schemas {
		all = append(all, schema(schemaName(i), flowcontrolv1.FlowSchemaSpec{MatchingPrecedence: int32(i), Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "user-" + itoa(uint64(i))}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: any, APIGroups: any, Resources: any, Namespaces: any}}}}}))
	}
	digest := attributes{User: "user-" + itoa(uint64(schemas-1)), Groups: []string{"system:authenticated"}, Verb: "get", IsResource: true, Namespace: "ns"}.digest()
	return cpuPerRequest(requests, func(int) {
		for _, s := range all {
			if matchesFlowSchema(digest, s) {
				break
			}
		}
	})
}

// benchmarkAll answers the benchmarks asked for on standard input, one JSON line each, with nanoseconds per request.
func benchmarkAll() {
	decoder := json.NewDecoder(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	for decoder.More() {
		var asked struct {
			benchmark
			Schemas int `json:"schemas"`
		}
		must(decoder.Decode(&asked))
		if asked.Schemas > 0 {
			must(encoder.Encode(runClassification(asked.Schemas, asked.Requests)))
		} else {
			must(encoder.Encode(runBenchmark(asked.benchmark)))
		}
	}
}
