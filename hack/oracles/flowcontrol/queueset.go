package main

import (
	"container/heap"
	"context"
	"math/rand/v2"

	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/apiserver/pkg/util/shufflesharding"
	"time"
)

// Operations of a queue set scenario. Each is written as
//
//	[op, nanoseconds since the one before, arguments ...]
//
// and followed by what the original then was: {"d": ids dispatched in order, "s": [waiting, executing, seats in use,
// seats waiting, demand], "r": start and next dispatch R of the queues that are not empty, now and then}.
const (
	opConfigure = "c" // queues, handSize, queueLengthLimit, concurrencyLimit
	opStart     = "s" // id, flow, initialSeats, finalSeats, additional latency in ns; then "rejected" by "x"
	opFinish    = "f" // id
	opCancel    = "x" // id
	opLinger    = "l" // seats whose additional latency is over
)

type step struct {
	Op         []any            `json:"o"`
	Rejected   bool             `json:"x,omitempty"`
	Dispatched []int            `json:"d,omitempty"`
	State      [5]int           `json:"s"`
	Queues     map[int][]string `json:"r,omitempty"`
}

type queueSetScenario struct {
	header
	Flows []string `json:"flows"` // hashes
	Steps []step   `json:"steps"`
}

type event struct {
	at  int64
	seq int
	run func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// agenda runs events in order of time; what the clock has scheduled goes first.
type agenda struct {
	clock  *stepClock
	events eventHeap
	seq    int
	linger func()
	ended  bool
}

func (a *agenda) at(ns int64, run func()) {
	a.seq++
	heap.Push(&a.events, event{ns, a.seq, run})
}

func (a *agenda) now() int64 { return a.clock.now.Sub(epoch).Nanoseconds() }

func (a *agenda) run(until int64) {
	for !a.ended {
		next := a.clock.next()
		if len(a.events) > 0 && (next < 0 || a.events[0].at < next) {
			if a.events[0].at > until {
				return
			}
			e := heap.Pop(&a.events).(event)
			a.clock.set(e.at)
			e.run()
		} else if next >= 0 && next <= until {
			a.clock.set(next)
			a.linger()
		} else {
			return
		}
	}
}

type waiter struct {
	id       int
	request  fq.Request
	cancel   context.CancelFunc
	service  int64
	state    string // waiting, executing, done
	patience int64
}

func between(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// exponential is a time in nanoseconds, whole microseconds, with the given mean.
func exponential(r *rand.Rand, mean float64) int64 {
	return int64(r.ExpFloat64()*mean/1000)*1000 + 1000
}

func randomQueuing(r *rand.Rand, name string) fq.QueuingConfig {
	for {
		c := fq.QueuingConfig{
			Name:             name,
			DesiredNumQueues: oneOf(r, 1, 1, 2, 3, 4, 5, 8, 8, 16, 16, 32, 64, 64, 128, 512),
			HandSize:         between(r, 1, 10),
			QueueLengthLimit: oneOf(r, 1, 2, 3, 5, 10, 50),
		}
		if _, err := shufflesharding.NewDealer(c.DesiredNumQueues, c.HandSize); err == nil {
			return c
		}
	}
}

func runQueueSet(h header, r *rand.Rand) queueSetScenario {
	s := queueSetScenario{header: h}
	clock := newStepClock()
	demand := &demandGauge{}
	factory := queueset.NewQueueSetFactory(clock)
	// The original forgets whose queue a lingering request was when that queue was removed meanwhile, and then removes
	// another one. So scenarios have either additional latency or fewer queues at some time, not both.
	lingering := r.IntN(3) == 0

	queuing := randomQueuing(r, "level")
	dispatching := fq.DispatchingConfig{ConcurrencyLimit: between(r, 1, oneOf(r, 2, 5, 30)), ConcurrencyDenominator: 1}
	if r.IntN(10) == 0 {
		queuing = fq.QueuingConfig{Name: "level", DesiredNumQueues: oneOf(r, 0, -1)}
	}
	pair := metrics.RatioedGaugePair{RequestsWaiting: noGauge{}, RequestsExecuting: noGauge{}}
	completer, err := factory.BeginConstruction(queuing, pair, noGauge{}, demand)
	must(err)
	set := completer.Complete(dispatching)
	totals := openQueueSet(set)

	flows := between(r, 1, 12)
	for range flows {
		s.Flows = append(s.Flows, itoa(r.Uint64()))
	}
	hashes := make([]uint64, flows)
	for i := range hashes {
		hashes[i] = atou(s.Flows[i])
	}

	var dispatched []int
	plan := &agenda{clock: clock}
	last := int64(0)
	record := func(rejected bool, op ...any) {
		t := totals.totals
		st := step{Op: op, Rejected: rejected, Dispatched: dispatched,
			State: [5]int{*t[0], *t[1], *t[2], *t[3], demand.seats}}
		dispatched = nil
		if len(s.Steps)%16 == 15 {
			d := set.Dump(false)
			st.Queues = map[int][]string{-1: {itoa(uint64(len(d.Queues)))}}
			for i, q := range d.Queues {
				if len(q.Requests) > 0 || q.ExecutingRequests > 0 {
					st.Queues[i] = []string{q.NextDispatchR, itoa(uint64(len(q.Requests))), itoa(uint64(q.SeatsInUse))}
				}
			}
		}
		s.Steps = append(s.Steps, st)
	}
	since := func() int64 {
		passed := plan.now() - last
		last = plan.now()
		return passed
	}
	configure := func() {
		record(false, opConfigure, since(), queuing.DesiredNumQueues, queuing.HandSize, queuing.QueueLengthLimit, dispatching.ConcurrencyLimit)
	}
	plan.linger = func() {
		clock.run()
		record(false, opLinger, since())
	}
	configure()

	finish := func(w *waiter) func() {
		return func() {
			w.request.Finish(func() {})
			w.state = "done"
			record(false, opFinish, since(), w.id)
		}
	}
	started := func(w *waiter) {
		w.state = "executing"
		plan.at(plan.now()+w.service, finish(w))
	}
	meanService := oneOf(r, 1e6, 3e6, 20e6, 200e6)
	meanWidth := oneOf(r, 1, 1, 2, 4)
	pace := oneOf(r, 0.5, 0.9, 1.2, 2, 4)
	elephant := r.Float64()
	requests := between(r, 30, 90)

	arrive := func(id int) {
		flow := 0
		if r.Float64() > elephant {
			flow = r.IntN(flows)
		}
		work := fcrequest.WorkEstimate{InitialSeats: uint64(between(r, 1, 2*meanWidth-1))}
		if r.IntN(30) == 0 {
			work.InitialSeats += uint64(dispatching.ConcurrencyLimit)
		}
		if lingering && r.IntN(2) == 0 {
			work.FinalSeats = uint64(between(r, 0, oneOf(r, 3, 12, 40)))
			work.AdditionalLatency = time.Duration(exponential(r, meanService))
		}
		w := &waiter{id: id, service: exponential(r, meanService), state: "new"}
		ctx := genericrequest.WithUser(context.Background(), &user.DefaultInfo{})
		ctx, w.cancel = context.WithCancel(ctx)
		note := func(inQueue bool) {
			if inQueue || w.state == "cancelling" {
				return
			}
			if w.state == "waiting" {
				dispatched = append(dispatched, w.id)
				started(w)
			} else {
				w.state = "executing"
			}
		}
		request, _ := set.StartRequest(ctx, &work, hashes[flow], "", "schema", nil, nil, note)
		rejected := request == nil
		w.request = request
		switch {
		case rejected:
			w.state = "done"
		case w.state == "executing" || queuing.DesiredNumQueues < 1:
			started(w)
		default:
			w.state = "waiting"
			if r.IntN(4) == 0 {
				plan.at(plan.now()+exponential(r, meanService), func() {
					if w.state != "waiting" {
						return
					}
					w.state = "cancelling"
					w.cancel()
					w.request.Finish(func() { panic("executed after cancel") })
					w.state = "done"
					record(false, opCancel, since(), w.id)
				})
			}
		}
		mode := 0 // rejected, waiting or executing
		if w.state == "waiting" {
			mode = 1
		} else if w.state == "executing" {
			mode = 2
		}
		record(rejected, opStart, since(), w.id, flow, int(work.InitialSeats), int(work.FinalSeats), work.AdditionalLatency.Nanoseconds(), mode)
	}

	at := int64(0)
	gap := meanService * float64(meanWidth) / (pace * float64(dispatching.ConcurrencyLimit))
	for id := range requests {
		if r.IntN(4) > 0 {
			at += exponential(r, gap)
		}
		plan.at(at, func() { arrive(id) })
	}
	if r.IntN(2) == 0 {
		for range between(r, 1, 6) {
			plan.at(int64(r.Float64()*float64(at)), func() {
				next := queuing
				if queuing.DesiredNumQueues >= 0 && r.IntN(2) == 0 {
					next = randomQueuing(r, "level")
					if r.IntN(4) == 0 {
						next.DesiredNumQueues = 0
					}
				}
				if lingering && next.DesiredNumQueues < queuing.DesiredNumQueues {
					next = queuing
				}
				dispatching.ConcurrencyLimit = between(r, oneOf(r, 0, 1), oneOf(r, 2, 5, 30))
				completer, err := set.BeginConfigChange(next)
				must(err)
				queuing = next
				completer.Complete(dispatching)
				configure()
			})
		}
	}
	plan.run(1 << 62)
	if *totals.totals[0] > 0 { // left waiting by a limit of 0
		dispatching.ConcurrencyLimit = 5
		completer, err := set.BeginConfigChange(queuing)
		must(err)
		completer.Complete(dispatching)
		configure()
		plan.run(1 << 62)
	}
	return s
}
