package main

import (
	"strconv"
	"time"

	"knative.dev/serving/pkg/autoscaler/config/autoscalerconfig"
	"knative.dev/serving/pkg/autoscaler/scaling"
)

// A trace is what happened to one revision, in order of time. As JSON:
//
//	{"number", "label", "startMs",
//	 "settings": [{"config", "scaling", "containerConcurrency", "reachable", "spec", "panicWindowMs", "initialEbc"}, ...],
//	 "events": [[kind, ms since start, ...], ...]}
//
// The first settings hold from the start. "config" and "scaling" are what was configured, "spec" is what the original made of
// it. Kinds of events:
//
//	[0, ms, at, concurrency, requests]                    a gateway's stat, recorded for the time `at`
//	[1, ms, concurrency, proxied, requests, proxied]      a scrape of the pods
//	[2, ms, ready, desired, excess burst capacity, valid] a tick and its result; ready -1: cannot be counted, -2: not found
//	[3, ms, index of settings]                            settings change
//	[4, ms, ready]                                        the autoscaler starts (first event) or restarts
type trace struct {
	number   int
	label    string
	start    time.Time
	settings []settings
	events   []byte
}

const (
	kindRecord = iota
	kindScrape
	kindTick
	kindSettings
	kindStart
)

func (t *trace) since(at time.Time) float64 {
	return float64(at.Sub(t.start).Milliseconds())
}

func (t *trace) add(kind int, values ...float64) {
	if len(t.events) > 0 {
		t.events = append(t.events, ',')
	}
	t.events = append(t.events, '[')
	t.events = strconv.AppendInt(t.events, int64(kind), 10)
	for _, v := range values {
		t.events = append(t.events, ',')
		t.events = strconv.AppendFloat(t.events, v, 'g', -1, 64)
	}
	t.events = append(t.events, ']')
}

// object writes JSON objects of numbers, booleans and plain strings.
type object struct {
	buf   []byte
	first bool
}

func newObject(buf []byte) *object { return &object{buf: append(buf, '{'), first: true} }

func (o *object) key(name string) {
	if !o.first {
		o.buf = append(o.buf, ',')
	}
	o.first = false
	o.buf = strconv.AppendQuote(o.buf, name)
	o.buf = append(o.buf, ':')
}

func (o *object) number(name string, v float64) *object {
	o.key(name)
	o.buf = strconv.AppendFloat(o.buf, v, 'g', -1, 64)
	return o
}

func (o *object) ms(name string, d time.Duration) *object {
	return o.number(name, float64(d)/float64(time.Millisecond))
}

func (o *object) bool(name string, v bool) *object {
	o.key(name)
	o.buf = strconv.AppendBool(o.buf, v)
	return o
}

func (o *object) string(name, v string) *object {
	o.key(name)
	o.buf = strconv.AppendQuote(o.buf, v)
	return o
}

func (o *object) raw(name string, write func([]byte) []byte) *object {
	o.key(name)
	o.buf = write(o.buf)
	return o
}

func (o *object) end() []byte { return append(o.buf, '}') }

func (t *trace) appendJSON(buf []byte) []byte {
	o := newObject(buf).number("number", float64(t.number)).string("label", t.label).
		number("startMs", float64(t.start.UnixMilli()))
	o.raw("settings", func(b []byte) []byte {
		b = append(b, '[')
		for i := range t.settings {
			if i > 0 {
				b = append(b, ',')
			}
			b = t.settings[i].appendJSON(b)
		}
		return append(b, ']')
	})
	o.raw("events", func(b []byte) []byte {
		b = append(b, '[')
		b = append(b, t.events...)
		return append(b, ']')
	})
	return append(o.end(), '\n')
}

func (s *settings) appendJSON(b []byte) []byte {
	o := newObject(b)
	o.raw("config", func(b []byte) []byte { return appendConfig(b, s.config) })
	o.raw("scaling", s.annotations.appendJSON)
	o.number("containerConcurrency", float64(s.containerConcurrency)).bool("reachable", s.reachable)
	o.raw("spec", func(b []byte) []byte { return appendSpec(b, &s.decider.Spec) })
	o.ms("panicWindowMs", s.metric.Spec.PanicWindow)
	o.number("initialEbc", float64(s.initialEbc()))
	return o.end()
}

func appendConfig(b []byte, c *autoscalerconfig.Config) []byte {
	return newObject(b).
		bool("enableScaleToZero", c.EnableScaleToZero).
		bool("allowZeroInitialScale", c.AllowZeroInitialScale).
		ms("stableWindowMs", c.StableWindow).
		number("panicWindowPercentage", c.PanicWindowPercentage).
		number("panicThresholdPercentage", c.PanicThresholdPercentage).
		number("containerConcurrencyTargetFraction", c.ContainerConcurrencyTargetFraction).
		number("containerConcurrencyTargetDefault", c.ContainerConcurrencyTargetDefault).
		number("requestsPerSecondTargetDefault", c.RPSTargetDefault).
		number("targetBurstCapacity", c.TargetBurstCapacity).
		number("activatorCapacity", c.ActivatorCapacity).
		number("maxScaleUpRate", c.MaxScaleUpRate).
		number("maxScaleDownRate", c.MaxScaleDownRate).
		ms("scaleToZeroGracePeriodMs", c.ScaleToZeroGracePeriod).
		ms("scaleToZeroPodRetentionPeriodMs", c.ScaleToZeroPodRetentionPeriod).
		ms("scaleDownDelayMs", c.ScaleDownDelay).
		number("initialScale", float64(c.InitialScale)).
		number("minScale", float64(c.MinScale)).
		number("maxScale", float64(c.MaxScale)).
		number("maxScaleLimit", float64(c.MaxScaleLimit)).
		end()
}

func appendSpec(b []byte, s *scaling.DeciderSpec) []byte {
	return newObject(b).
		string("metric", s.ScalingMetric).
		number("targetValue", s.TargetValue).
		number("totalValue", s.TotalValue).
		number("targetBurstCapacity", s.TargetBurstCapacity).
		number("panicThreshold", s.PanicThreshold).
		ms("stableWindowMs", s.StableWindow).
		number("maxScaleUpRate", s.MaxScaleUpRate).
		number("maxScaleDownRate", s.MaxScaleDownRate).
		ms("scaleDownDelayMs", s.ScaleDownDelay).
		number("activationScale", float64(s.ActivationScale)).
		number("initialScale", float64(s.InitialScale)).
		bool("reachable", s.Reachable).
		end()
}
