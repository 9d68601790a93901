package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"knative.dev/serving/pkg/apis/autoscaling"
	"knative.dev/serving/pkg/apis/autoscaling/v1alpha1"
	asconfig "knative.dev/serving/pkg/autoscaler/config"
	"knative.dev/serving/pkg/autoscaler/config/autoscalerconfig"
	"knative.dev/serving/pkg/autoscaler/scaling"
	kparesources "knative.dev/serving/pkg/reconciler/autoscaling/kpa/resources"
	aresources "knative.dev/serving/pkg/reconciler/autoscaling/resources"
)

const (
	namespace    = "oracle"
	revisionName = "rev-00001"
)

// annotations are a revision's own settings: the annotation as the original reads it, and the field as we name it.
type annotations []annotation

type annotation struct {
	key, value, field, json string
}

func (a annotations) appendJSON(b []byte) []byte {
	o := newObject(b)
	for _, one := range a {
		o.raw(one.field, func(b []byte) []byte { return append(b, one.json...) })
	}
	return o.end()
}

func (a annotations) asMap() map[string]string {
	m := make(map[string]string, len(a))
	for _, one := range a {
		m[one.key] = one.value
	}
	return m
}

// settings are what is configured for the revision, and what the original makes of it.
type settings struct {
	configMap            map[string]string
	config               *autoscalerconfig.Config
	annotations          annotations
	containerConcurrency int64
	reachable            bool

	decider *scaling.Decider
	metric  *v1alpha1.Metric
}

func (s *settings) resolve() error {
	config, err := asconfig.NewConfigFromMap(s.configMap)
	if err != nil {
		return err
	}
	reachability := v1alpha1.ReachabilityReachable
	if !s.reachable {
		reachability = v1alpha1.ReachabilityUnreachable
	}
	pa := &v1alpha1.PodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        revisionName,
			Annotations: s.annotations.asMap(),
		},
		Spec: v1alpha1.PodAutoscalerSpec{
			ContainerConcurrency: s.containerConcurrency,
			Reachability:         reachability,
		},
	}
	s.config = config
	s.decider = kparesources.MakeDecider(pa, config)
	target := "private-service"
	if s.decider.Spec.TargetBurstCapacity == -1 {
		// As the original's reconciler: nothing is scraped when the activator sees everything.
		target = ""
	}
	s.metric = aresources.MakeMetric(pa, target, config)
	return nil
}

// initialEbc is what the original's MultiScaler starts a decider with.
func (s *settings) initialEbc() int32 {
	switch tbc := s.decider.Spec.TargetBurstCapacity; tbc {
	case -1, 0:
		return int32(tbc)
	default:
		return int32(float64(s.decider.Spec.InitialScale)*s.decider.Spec.TotalValue - tbc)
	}
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// newSettings draws a valid configuration: each key has an even chance to be left at its default.
func newSettings(r *rand.Rand) settings {
	for {
		s := settings{
			configMap:            map[string]string{},
			containerConcurrency: pick[int64](r, 0, 0, 1, 2, 10, 100, 1000),
			reachable:            chance(r, 0.9),
		}
		s.drawConfig(r)
		s.drawAnnotations(r)
		if s.resolve() == nil {
			return s
		}
	}
}

func (s *settings) drawConfig(r *rand.Rand) {
	set := func(p float64, key, value string) {
		if chance(r, p) {
			s.configMap[key] = value
		}
	}
	set(0.5, "stable-window", fmt.Sprintf("%ds", pick(r, 6, 7, 10, 12, 20, 30, 40, 61, 90, 128, 300, 3600)))
	set(0.5, "panic-window-percentage", number(pick(r, 1, 2.5, 5, 10, 15, 33.3, 50, 100, 1+99*r.Float64())))
	set(0.5, "panic-threshold-percentage", number(pick(r, 110, 120, 150, 200, 250, 300, 1000, 110+400*r.Float64())))
	set(0.4, "container-concurrency-target-percentage", number(pick(r, 100, 70, 80, 0.8, 1, 55.5, 10, 100*r.Float64())))
	set(0.3, "container-concurrency-target-default", number(pick(r, 1, 10, 50, 100, 128, 1+200*r.Float64())))
	set(0.3, "requests-per-second-target-default", number(pick(r, 1, 10, 128, 200, 1+400*r.Float64())))
	set(0.5, "target-burst-capacity", number(pick(r, -1, 0, 1, 10, 100, 211, 1000, 300*r.Float64())))
	set(0.5, "max-scale-up-rate", number(pick(r, 1.1, 1.5, 2, 3, 10, 1000, 1.01+9*r.Float64())))
	set(0.5, "max-scale-down-rate", number(pick(r, 1.1, 1.5, 2, 5, 100, 1.01+9*r.Float64())))
	set(0.25, "scale-down-delay", fmt.Sprintf("%ds", pick(r, 1, 2, 3, 10, 30, 59, 120, 900, 3600)))
	set(0.3, "initial-scale", strconv.Itoa(pick(r, 0, 1, 3, 10)))
	set(0.3, "allow-zero-initial-scale", "true")
	set(0.2, "min-scale", strconv.Itoa(pick(r, 1, 2)))
	set(0.2, "max-scale", strconv.Itoa(pick(r, 2, 20)))
	set(0.1, "enable-scale-to-zero", "false")
}

func (s *settings) drawAnnotations(r *rand.Rand) {
	text := func(p float64, key, value, field string) {
		if chance(r, p) {
			s.annotations = append(s.annotations, annotation{key, value, field, strconv.Quote(value)})
		}
	}
	float := func(p float64, key string, v float64, field string, json float64) {
		if chance(r, p) {
			s.annotations = append(s.annotations, annotation{key, number(v), field, number(json)})
		}
	}
	seconds := func(p float64, key string, v int, field string) {
		if chance(r, p) {
			s.annotations = append(s.annotations, annotation{key, fmt.Sprintf("%ds", v), field, strconv.Itoa(v * 1000)})
		}
	}
	text(0.3, autoscaling.MetricAnnotationKey, pick(r, autoscaling.RPS, autoscaling.RPS, autoscaling.Concurrency), "metric")
	text(0.15, autoscaling.MetricAggregationAlgorithmKey, autoscaling.MetricAggregationAlgorithmWeightedExponential, "aggregation")
	target := pick(r, 0.01, 0.5, 1, 5, 7, 10, 64, 100, 1+199*r.Float64())
	float(0.5, autoscaling.TargetAnnotationKey, target, "target", target)
	utilization := pick(r, 1, 10, 50, 70, 75, 100, 1+99*r.Float64())
	float(0.3, autoscaling.TargetUtilizationPercentageKey, utilization, "targetUtilization", utilization/100)
	burst := pick(r, -1, 0, 1, 10, 100, 211, 500, 1+250*r.Float64())
	float(0.3, autoscaling.TargetBurstCapacityKey, burst, "targetBurstCapacity", burst)
	seconds(0.4, autoscaling.WindowAnnotationKey, pick(r, 6, 8, 10, 15, 20, 31, 60, 100, 256, 600), "windowMs")
	panicWindow := pick(r, 1, 5, 10, 20, 50, 83.3, 100, 1+99*r.Float64())
	float(0.3, autoscaling.PanicWindowPercentageAnnotationKey, panicWindow, "panicWindowPercentage", panicWindow)
	threshold := pick(r, 110, 150, 200, 400, 1000, 110+600*r.Float64())
	float(0.3, autoscaling.PanicThresholdPercentageAnnotationKey, threshold, "panicThresholdPercentage", threshold)
	activation := pick(r, 2, 3, 5, 20)
	float(0.2, autoscaling.ActivationScaleKey, float64(activation), "activationScale", float64(activation))
	initial := pick(r, 0, 1, 4)
	float(0.2, autoscaling.InitialScaleAnnotationKey, float64(initial), "initialScale", float64(initial))
	seconds(0.2, autoscaling.ScaleDownDelayAnnotationKey, pick(r, 0, 1, 4, 15, 60, 300, 1800), "scaleDownDelayMs")
}

// changed draws settings to change to while the autoscaler runs. The aggregation is fixed for a revision, and the
// original takes a new scale-down delay at a restart only, so both stay.
func (s *settings) changed(r *rand.Rand) settings {
	next := newSettings(r)
	delay := s.decider.Spec.ScaleDownDelay
	fixed := annotations{{
		autoscaling.ScaleDownDelayAnnotationKey, delay.String(), "scaleDownDelayMs", number(float64(delay.Milliseconds())),
	}}
	for _, one := range s.annotations {
		if one.field == "aggregation" {
			fixed = append(fixed, one)
		}
	}
	for _, one := range next.annotations {
		if one.field != "aggregation" && one.field != "scaleDownDelayMs" {
			fixed = append(fixed, one)
		}
	}
	next.annotations = fixed
	if err := next.resolve(); err != nil {
		panic(err)
	}
	return next
}
