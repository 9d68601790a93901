package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// Steps of a controller scenario, each `ns` after the one before:
//
//	{"op": "configure", "levels": changed or new specs, "schemas": ..., "gone": names}
//	{"op": "request", "id", "a": attributes, "seats"} -> {"schema", "level", "mode"}: rejected, waiting or executing
//	{"op": "finish" | "cancel", "id"}, {"op": "adjust"}
//	{"op": "dump"} -> {"dumps": by its path each debug dump, its lines with requests in order of the letters}
//
// and what the original then was: {"d": per level the ids dispatched in order, "levels": limits, after each configuration
// and adjustment, "state": per level [waiting, executing, seats in use, seats waiting] where it changed}. A scenario ends
// early where the original would go on by chance.
type controllerStep struct {
	NS         int64                                                 `json:"ns"`
	Op         string                                                `json:"op"`
	ID         *int                                                  `json:"id,omitempty"`
	Attributes *attributes                                           `json:"a,omitempty"`
	Seats      int                                                   `json:"seats,omitempty"`
	Schema     string                                                `json:"schema,omitempty"`
	Level      string                                                `json:"level,omitempty"`
	Mode       string                                                `json:"mode,omitempty"`
	Levels     []named[flowcontrolv1.PriorityLevelConfigurationSpec] `json:"levels,omitempty"`
	Schemas    []named[flowcontrolv1.FlowSchemaSpec]                 `json:"schemas,omitempty"`
	Dangling   []string                                              `json:"dangling,omitempty"`
	Limits     []levelState                                          `json:"limits,omitempty"`
	Dispatched map[string][]int                                      `json:"d,omitempty"`
	State      map[string][4]int                                     `json:"state,omitempty"`
	Dumps      map[string][]string                                   `json:"dumps,omitempty"`
}

type controllerScenario struct {
	header
	TotalSeats int              `json:"totalSeats"`
	Steps      []controllerStep `json:"steps"`
}

type noGaugeVec struct{}

func (noGaugeVec) NewForLabelValuesSafe(float64, float64, []string) metrics.RatioedGauge {
	return noGauge{}
}

func newController(clock *stepClock, totalSeats int) controller {
	client := fake.NewSimpleClientset()
	return openController(utilflowcontrol.NewTestable(utilflowcontrol.TestableConfig{
		Name:                   "oracle",
		Clock:                  clock,
		AsFieldManager:         "oracle",
		FoundToDangling:        func(found bool) bool { return !found },
		InformerFactory:        informers.NewSharedInformerFactory(client, 0),
		FlowcontrolClient:      client.FlowcontrolV1(),
		ServerConcurrencyLimit: totalSeats,
		ReqsGaugeVec:           noGaugeVec{},
		ExecSeatsGaugeVec:      noGaugeVec{},
		QueueSetFactory:        queueset.NewQueueSetFactory(clock),
	}))
}

func byName[T any](objects map[string]T) []T {
	var list []T
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, objects[name])
	}
	return list
}

func runController(h header, r *rand.Rand) controllerScenario {
	s := controllerScenario{header: h, TotalSeats: oneOf(r, 5, 20, 60, 600), Steps: []controllerStep{}}
	clock := newStepClock()
	c := newController(clock, s.TotalSeats)
	levels := map[string]*flowcontrolv1.PriorityLevelConfiguration{}
	schemas := map[string]*flowcontrolv1.FlowSchema{}
	if r.IntN(3) == 0 {
		for _, l := range append(slices.Clone(bootstrap.MandatoryPriorityLevelConfigurations), bootstrap.SuggestedPriorityLevelConfigurations...) {
			levels[l.Name] = l
		}
		for _, f := range append(slices.Clone(bootstrap.MandatoryFlowSchemas), bootstrap.SuggestedFlowSchemas...) {
			schemas[f.Name] = f
		}
	}

	plan := &agenda{clock: clock, linger: func() { panic("nothing lingers here") }}
	last := int64(0)
	dispatched := map[string][]int{}
	before := map[string][4]int{}
	waiters := map[int]*waiter{}
	record := func(st controllerStep, limits bool) {
		st.NS = plan.now() - last
		last = plan.now()
		for _, ids := range dispatched {
			for _, id := range ids {
				queueset.OnRequestDispatched(waiters[id].request)
			}
		}
		if len(dispatched) > 0 {
			st.Dispatched, dispatched = dispatched, map[string][]int{}
		}
		all := c.levels()
		if halfway(all) {
			plan.ended = true
			return
		}
		sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
		if limits {
			st.Limits = all
		}
		now := map[string][4]int{}
		st.State = map[string][4]int{}
		for _, l := range all {
			t := openQueueSet(l.queues).totals
			now[l.Name] = [4]int{*t[0], *t[1], *t[2], *t[3]}
			if now[l.Name] != before[l.Name] {
				st.State[l.Name] = now[l.Name]
			}
		}
		before = now
		s.Steps = append(s.Steps, st)
	}
	digest := func() (dangling []string) {
		for _, update := range lockAndDigestConfigObjects(c.pointer, byName(levels), byName(schemas)) {
			if update.condition.Status == flowcontrolv1.ConditionTrue {
				dangling = append(dangling, update.flowSchema.Name)
			}
		}
		return dangling
	}
	// settle reads the objects again if the controller asks for it, as its worker would.
	settle := func(idle bool, level string) {
		if idle {
			maybeReap(c.pointer, level)
		}
		for c.reloadWanted() {
			digest()
		}
	}
	configure := func() {
		st := controllerStep{Op: "configure"}
		st.Dangling = digest()
		settle(false, "")
		for _, l := range byName(levels) {
			st.Levels = append(st.Levels, named[flowcontrolv1.PriorityLevelConfigurationSpec]{l.Name, l.Spec})
		}
		for _, f := range byName(schemas) {
			st.Schemas = append(st.Schemas, named[flowcontrolv1.FlowSchemaSpec]{f.Name, f.Spec})
		}
		record(st, true)
	}
	levelCount, schemaCount := between(r, 1, 4), between(r, 1, 8)
	change := func(all bool) {
		for i := range levelCount {
			switch name := levelName(i); {
			case !all && r.IntN(3) > 0:
			case r.IntN(8) == 0:
				levels[name] = level(name, brokenLevelSpec(r))
			case !all && r.IntN(3) == 0:
				delete(levels, name)
			default:
				levels[name] = level(name, randomLevelSpec(r))
			}
		}
		names := append(slices.Sorted(maps.Keys(levels)), "exempt", "catch-all", "level-0", "level-9")
		for i := range schemaCount {
			if !all && r.IntN(3) > 0 {
				continue
			}
			if name := schemaName(i); !all && r.IntN(4) == 0 {
				delete(schemas, name)
			} else {
				schemas[name] = schema(name, randomSchemaSpec(r, names))
			}
		}
	}
	change(true)
	configure()

	population := []attributes{}
	for range between(r, 2, 12) {
		population = append(population, randomAttributes(r))
	}
	meanService := oneOf(r, 3e6, 50e6, 2e9)
	gap := meanService / (oneOf(r, 0.3, 1, 3) * float64(min(s.TotalSeats, 40)))
	at := int64(0)
	arrive := func(id int) {
		a := oneOf(r, population...)
		if r.IntN(2) == 0 {
			a = population[0]
		}
		st := controllerStep{Op: "request", ID: &id, Attributes: &a, Seats: oneOf(r, 1, 1, 1, 2, 5, 30), Mode: "new"}
		w := &waiter{id: id, service: exponential(r, meanService), state: "new"}
		waiters[id] = w
		finish := func() {
			idle := w.request.Finish(func() {})
			w.state = "done"
			settle(idle, st.Level)
			record(controllerStep{Op: "finish", ID: &id}, false)
		}
		ctx := context.Background()
		digest := a.digest()
		info := *digest.RequestInfo
		if info.IsResourceRequest {
			info.APIVersion = "v1"
		}
		ctx = genericrequest.WithUser(genericrequest.WithRequestInfo(ctx, &info), digest.User)
		ctx, w.cancel = context.WithCancel(ctx)
		_, _, _, request, _ := startRequest(c.pointer, ctx, digest,
			func(fs *flowcontrolv1.FlowSchema, pl *flowcontrolv1.PriorityLevelConfiguration, _ string) {
				st.Schema, st.Level = fs.Name, pl.Name
			},
			func() fcrequest.WorkEstimate {
				// As upstream's estimators bound what they ask for.
				most := c.iface.GetMaxSeats(st.Level)
				if most == 0 || most > 10 {
					most = 10
				}
				return fcrequest.WorkEstimate{InitialSeats: min(uint64(st.Seats), most)}
			},
			func(inQueue bool) {
				switch {
				case inQueue:
					st.Mode = "waiting"
				case w.state == "waiting":
					w.state = "executing"
					dispatched[st.Level] = append(dispatched[st.Level], id)
					plan.at(plan.now()+w.service, finish)
				case w.state == "new":
					st.Mode = "executing"
				}
			})
		w.request = request
		switch {
		case request == nil:
			st.Mode = "rejected"
			w.state = "done"
			settle(false, "")
		case st.Mode == "waiting":
			w.state = "waiting"
			if r.IntN(4) == 0 {
				plan.at(plan.now()+exponential(r, meanService), func() {
					if w.state != "waiting" {
						return
					}
					w.state = "cancelling"
					w.cancel()
					idle := w.request.Finish(func() { panic("executed after cancel") })
					w.state = "done"
					settle(idle, st.Level)
					record(controllerStep{Op: "cancel", ID: &id}, false)
				})
			}
		default:
			st.Mode = "executing"
			w.state = "executing"
			queueset.OnRequestDispatched(request)
			plan.at(plan.now()+w.service, finish)
		}
		record(st, false)
	}
	requests := between(r, 10, 60)
	for id := range requests {
		if r.IntN(4) > 0 {
			at += exponential(r, gap)
		}
		if r.IntN(20) == 0 {
			at += exponential(r, 5e9)
		}
		plan.at(at, func() {
			arrive(id)
			if id == requests/2 && !plan.ended {
				record(controllerStep{Op: "dump", Dumps: c.dumps()}, false)
			}
		})
	}
	for range r.IntN(4) {
		plan.at(int64(r.Float64()*float64(at)), func() {
			change(false)
			configure()
		})
	}
	for t := int64(10 * time.Second); t < at+int64(20*time.Second); t += int64(10 * time.Second) {
		plan.at(t, func() {
			updateBorrowing(c.pointer)
			record(controllerStep{Op: "adjust"}, true)
		})
	}
	plan.run(1 << 62)
	return s
}
