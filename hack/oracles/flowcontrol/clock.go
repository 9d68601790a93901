package main

import (
	"time"

	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
)

// epoch is when every scenario begins.
var epoch = time.Unix(1_700_000_000, 0)

// stepClock is a clock that only its owner moves, and that runs what is scheduled in the owner's goroutine, in order.
type stepClock struct {
	now    time.Time
	events []scheduled
}

type scheduled struct {
	at time.Time
	f  eventclock.EventFunc
}

var _ eventclock.Interface = &stepClock{}

func newStepClock() *stepClock                       { return &stepClock{now: epoch} }
func (c *stepClock) Now() time.Time                  { return c.now }
func (c *stepClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }
func (c *stepClock) Sleep(time.Duration)             { panic("nobody sleeps here") }
func (c *stepClock) EventAfterTime(f eventclock.EventFunc, t time.Time) {
	c.events = append(c.events, scheduled{t, f})
}
func (c *stepClock) EventAfterDuration(f eventclock.EventFunc, d time.Duration) {
	c.EventAfterTime(f, c.now.Add(d))
}

// next is when the next event is due, in nanoseconds since the epoch; -1 if there is none.
func (c *stepClock) next() int64 {
	first := int64(-1)
	for _, e := range c.events {
		if at := e.at.Sub(epoch).Nanoseconds(); first < 0 || at < first {
			first = at
		}
	}
	return first
}

// set moves the clock to a time in nanoseconds since the epoch, running nothing.
func (c *stepClock) set(ns int64) { c.now = epoch.Add(time.Duration(ns)) }

// run runs the events that are due, in the order in which they were scheduled.
func (c *stepClock) run() {
	for i := 0; i < len(c.events); {
		if e := c.events[i]; e.at.After(c.now) {
			i++
		} else {
			c.events = append(c.events[:i:i], c.events[i+1:]...)
			e.f(c.now)
		}
	}
}

// noGauge takes what nobody reads.
type noGauge struct{}

func (noGauge) Set(float64)            {}
func (noGauge) Inc()                   {}
func (noGauge) Dec()                   {}
func (noGauge) Add(float64)            {}
func (noGauge) SetToCurrentTime()      {}
func (noGauge) SetDenominator(float64) {}

// demandGauge keeps the seat demand last reported.
type demandGauge struct {
	noGauge
	seats int
}

func (g *demandGauge) Set(x float64) { g.seats = int(x) }
