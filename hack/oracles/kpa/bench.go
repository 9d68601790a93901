package main

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"

	"knative.dev/serving/pkg/apis/autoscaling"
	"knative.dev/serving/pkg/apis/autoscaling/v1alpha1"
	"knative.dev/serving/pkg/autoscaler/metrics"
	"knative.dev/serving/pkg/autoscaler/scaling"
)

// counter is as many ready pods as are set.
type counter int

func (c *counter) ReadyCount() (int, error)    { return int(*c), nil }
func (c *counter) NotReadyCount() (int, error) { return 0, nil }

// benchmarks are the cases that test/bench/autoscaling.ts measures on our side too, under the same names.
var benchmarks = []struct {
	name  string
	delay string
	load  func(second int) float64
}{
	{"steady", "", func(int) float64 { return 35 }},
	{"spiky", "", func(second int) float64 { return float64(20 + 400*(second/30%2)) }},
	{"scale-down delay", "10m0s", func(second int) float64 { return float64(200 - second%180) }},
}

// benchmark writes, for each case, the time in nanoseconds of one decision with the load of its two seconds recorded before
// it (two gateways and one scrape a second), and of the decision alone.
func benchmark(out io.Writer) error {
	type result struct {
		Name     string  `json:"name"`
		Tick     float64 `json:"tickNs"`
		Decision float64 `json:"decisionNs"`
	}
	var results []result
	for _, one := range benchmarks {
		results = append(results, result{
			Name:     one.name,
			Tick:     perOp(testing.Benchmark(func(b *testing.B) { ticks(b, one.delay, one.load, true) })),
			Decision: perOp(testing.Benchmark(func(b *testing.B) { ticks(b, one.delay, one.load, false) })),
		})
	}
	return json.NewEncoder(out).Encode(results)
}

func perOp(r testing.BenchmarkResult) float64 { return float64(r.T.Nanoseconds()) / float64(r.N) }

func ticks(b *testing.B, delay string, load func(int) float64, record bool) {
	s := settings{configMap: map[string]string{}, containerConcurrency: 10, reachable: true}
	if delay != "" {
		s.annotations = annotations{{autoscaling.ScaleDownDelayAnnotationKey, delay, "scaleDownDelayMs", ""}}
	}
	if err := s.resolve(); err != nil {
		b.Fatal(err)
	}
	collector := metrics.NewMetricCollector(
		func(*v1alpha1.Metric, *zap.SugaredLogger) (metrics.StatsScraper, error) { return nil, nil }, logger)
	if err := collector.CreateOrUpdate(s.metric); err != nil {
		b.Fatal(err)
	}
	defer collector.Delete(namespace, revisionName)
	ready := counter(5)
	scaler := scaling.New(*attribute.EmptySet(), noop.NewMeterProvider(), namespace, revisionName, collector, &ready,
		&s.decider.Spec)
	now := time.Unix(1_700_000_000, 0)
	second := func(n int) {
		value := load(n) / 3
		for range 3 {
			collector.Record(key, now, metrics.Stat{AverageConcurrentRequests: value, RequestCount: value})
		}
		now = now.Add(time.Second)
	}
	for n := range 120 {
		second(n)
	}
	b.ResetTimer()
	for i := range b.N {
		if record {
			second(2 * i)
			second(2*i + 1)
		}
		result := scaler.Scale(logger, now)
		ready = counter(max(1, result.DesiredPodCount))
	}
}
