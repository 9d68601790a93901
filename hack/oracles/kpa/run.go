package main

import (
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"knative.dev/serving/pkg/apis/autoscaling"
	"knative.dev/serving/pkg/apis/autoscaling/v1alpha1"
	"knative.dev/serving/pkg/autoscaler/metrics"
	"knative.dev/serving/pkg/autoscaler/scaling"
)

const tick = 2 * time.Second

var (
	key           = types.NamespacedName{Namespace: namespace, Name: revisionName}
	logger        = zap.NewNop().Sugar()
	errNotCounted = errors.New("pods cannot be listed")
	errScrape     = errors.New("no pod answers")
	errNotFound   = apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, revisionName)
)

// runner is one scenario under way inside a bubble of synctest: only sleeping moves the clock.
type runner struct {
	*scenario
	trace     *trace
	collector *metrics.MetricCollector
	scaler    scaling.UniScaler
	pods      pods
	podsErr   error
	now       settings
}

// ReadyCount is what the original asks for the ready pods.
func (w *runner) ReadyCount() (int, error) { return w.pods.ready, w.podsErr }

// NotReadyCount completes the interface; the autoscaler does not call it.
func (w *runner) NotReadyCount() (int, error) { return 0, nil }

// Scrape is called by the original's collector each second.
func (w *runner) Scrape(time.Duration) (metrics.Stat, error) {
	now := time.Now()
	w.pods.settle(now)
	if chance(w.r, w.faults.scrapeError) {
		return metrics.Stat{}, errScrape
	}
	if w.pods.ready == 0 || chance(w.r, w.faults.scrapeGap) || w.silent(w.second(now)) {
		return metrics.Stat{}, nil
	}
	load := w.loadAt(now)
	stat := metrics.Stat{
		PodName:                          "service-scraper",
		AverageConcurrentRequests:        w.round(load),
		AverageProxiedConcurrentRequests: w.round(load * w.byGateway),
		RequestCount:                     w.round(load * w.requests),
		ProxiedRequestCount:              w.round(load * w.requests * w.byGateway),
	}
	w.trace.add(kindScrape, w.trace.since(now), stat.AverageConcurrentRequests, stat.AverageProxiedConcurrentRequests,
		stat.RequestCount, stat.ProxiedRequestCount)
	return stat, nil
}

func (w *runner) second(now time.Time) float64 { return now.Sub(w.trace.start).Seconds() }

func (w *runner) loadAt(now time.Time) float64 {
	return w.load(w.second(now)) * w.now.decider.Spec.TargetValue / w.unit()
}

// unit makes a load of 1 a pod's target for either metric.
func (w *runner) unit() float64 {
	if w.now.decider.Spec.ScalingMetric == autoscaling.RPS {
		return w.requests
	}
	return 1
}

func run(s *scenario) *trace {
	time.Sleep(s.offset)
	w := &runner{
		scenario: s,
		trace:    &trace{number: s.number, label: s.label(), start: time.Now()},
		pods:     pods{ready: s.ready0},
	}
	w.collector = metrics.NewMetricCollector(
		func(*v1alpha1.Metric, *zap.SugaredLogger) (metrics.StatsScraper, error) { return w.scraper(), nil }, logger)
	w.use(s.settings)
	w.start()
	for _, at := range w.plan() {
		time.Sleep(time.Until(at.time))
		at.do(w)
	}
	w.collector.Delete(namespace, revisionName)
	return w.trace
}

// scraper is none where nothing is to be scraped, as the original's factory has it.
func (w *runner) scraper() metrics.StatsScraper {
	if w.now.metric.Spec.ScrapeTarget == "" {
		return nil
	}
	return w
}

func (w *runner) use(s settings) {
	w.now = s
	w.trace.settings = append(w.trace.settings, s)
}

func (w *runner) start() {
	if err := w.collector.CreateOrUpdate(w.now.metric); err != nil {
		panic(err)
	}
	w.scaler = scaling.New(*attribute.EmptySet(), noop.NewMeterProvider(), namespace, revisionName, w.collector, w,
		&w.now.decider.Spec)
	ready := w.pods.ready
	if w.podsErr != nil {
		ready = 0
	}
	w.trace.add(kindStart, w.trace.since(time.Now()), float64(ready))
}

// moment is something to happen; scrapes happen on their own at whole seconds since the start.
type moment struct {
	time time.Time
	do   func(*runner)
}

// plan lays out the scenario's events: gateways report in their own phase each second, ticks come every two seconds. No
// two kinds share a phase, for the original leaves their order open.
func (w *runner) plan() []moment {
	var moments []moment
	restarts := 0
	at := w.trace.start.Add(537 * time.Millisecond)
	for range w.ticks {
		gap := tick
		if chance(w.r, w.faults.lateTick) {
			gap += time.Duration(w.r.IntN(9)) * 100 * time.Millisecond
		}
		if chance(w.r, w.faults.longPause) {
			gap += time.Duration(w.r.IntN(200)) * time.Second
		}
		at = at.Add(gap)
		moments = append(moments, moment{at, (*runner).tick})
		if chance(w.r, w.faults.extraTick) {
			moments = append(moments, moment{at.Add(time.Duration(w.r.IntN(19))*100*time.Millisecond + time.Millisecond), (*runner).tick})
		}
		if chance(w.r, w.faults.restart) {
			// Scrapes go on in the phase of the restart.
			offset := time.Duration(10+restarts%12) * time.Millisecond
			restarts++
			moments = append(moments, moment{at.Add(offset), (*runner).restart})
		} else if chance(w.r, w.faults.change) {
			moments = append(moments, moment{at.Add(3 * time.Millisecond), (*runner).change})
		}
	}
	for g := range w.gateways {
		phase := time.Duration(110+g*250+w.r.IntN(20)) * time.Millisecond
		for second := w.trace.start.Add(phase); second.Before(at); second = second.Add(time.Second) {
			moments = append(moments, moment{second, (*runner).report})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.time.Compare(b.time) })
	return moments
}

func (w *runner) tick() {
	now := time.Now()
	w.pods.settle(now)
	if !w.closedLoop && chance(w.r, 0.1) {
		w.pods.ready = pick(w.r, 0, 1, 2, w.pods.ready+1, w.pods.ready/2, w.pods.ready+w.r.IntN(20))
	}
	seen := float64(w.pods.ready)
	w.podsErr = nil
	if chance(w.r, w.faults.podsUnknown) {
		w.podsErr, seen = errNotCounted, -1
	} else if chance(w.r, w.faults.podsNotFound) {
		// The original's lister gives no pods with this error.
		w.podsErr, seen, w.pods.ready = errNotFound, -2, 0
	}
	result := w.scaler.Scale(logger, now)
	valid := 0.
	if result.ScaleValid {
		valid = 1
		if w.closedLoop {
			w.follow(int(result.DesiredPodCount), now)
		}
	}
	w.trace.add(kindTick, w.trace.since(now), seen, float64(result.DesiredPodCount), float64(result.ExcessBurstCapacity), valid)
}

// mostPods keeps runaway scenarios (a huge load against a tiny target) inside the original's 32-bit results.
const mostPods = 200_000

func (w *runner) follow(desired int, now time.Time) {
	desired = min(desired, mostPods)
	if desired > w.pods.ready {
		w.pods.want(desired, now.Add(w.startDelay))
	} else if desired < w.pods.ready {
		w.pods.want(desired, now.Add(w.stopDelay))
	}
}

func (w *runner) report() {
	now := time.Now()
	if chance(w.r, w.faults.gatewayGap) || w.silent(w.second(now)) {
		return
	}
	load := w.loadAt(now) / float64(w.gateways)
	// With no pod there is no way but through a gateway.
	if w.pods.ready > 0 {
		load *= w.byGateway
	}
	// A gateway says nothing of a revision without traffic.
	if load == 0 && chance(w.r, 0.9) {
		return
	}
	// The original cuts the time of a gateway's stat to the second.
	at := now.Truncate(time.Second)
	if chance(w.r, w.faults.oldStat) {
		at = at.Add(-time.Duration(w.r.IntN(90)) * time.Second)
	} else if chance(w.r, w.faults.aheadStat) {
		at = at.Add(time.Duration(w.r.IntN(5)) * time.Second)
	}
	w.record(at, w.round(load), w.round(load*w.requests))
	if chance(w.r, w.faults.doubleStat) {
		w.record(at, w.round(load), w.round(load*w.requests))
	}
}

func (w *runner) record(at time.Time, concurrency, requests float64) {
	w.collector.Record(key, at, metrics.Stat{AverageConcurrentRequests: concurrency, RequestCount: requests})
	w.trace.add(kindRecord, w.trace.since(time.Now()), w.trace.since(at), concurrency, requests)
}

func (w *runner) restart() {
	w.collector.Delete(namespace, revisionName)
	w.start()
}

func (w *runner) change() {
	w.use(w.now.changed(w.r))
	w.scaler.Update(&w.now.decider.Spec)
	if err := w.collector.CreateOrUpdate(w.now.metric); err != nil && !errors.Is(err, errScrape) {
		panic(err)
	}
	w.trace.add(kindSettings, w.trace.since(time.Now()), float64(len(w.trace.settings)-1))
}
