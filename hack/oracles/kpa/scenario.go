package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// A scenario is one revision, its load over time, and what goes wrong around it. Everything random is drawn from one
// generator, so seed and number fix the whole run.
type scenario struct {
	number int
	ticks  int
	r      *rand.Rand

	settings settings
	shape    string
	load     func(second float64) float64
	// digits says how the stats are rounded: decimals, or parts of a power of two (ties for rounding).
	grain float64
	// closedLoop: ready pods follow what the autoscaler wants; else they wander on their own.
	closedLoop bool
	startDelay time.Duration
	stopDelay  time.Duration
	gateways   int
	// byGateway is the part of the load that passes gateways.
	byGateway float64
	requests  float64

	faults faults
	ready0 int
	// offset puts the start between two whole seconds.
	offset time.Duration
	// outages are times, in seconds since the start, in which nothing is heard of the revision.
	outages [][2]float64
}

func (s *scenario) silent(second float64) bool {
	for _, o := range s.outages {
		if second >= o[0] && second < o[1] {
			return true
		}
	}
	return false
}

// faults are chances per event.
type faults struct {
	gatewayGap, scrapeGap, scrapeError, oldStat, aheadStat, doubleStat float64
	podsUnknown, podsNotFound                                          float64
	lateTick, extraTick, longPause, restart, change                    float64
}

func newScenario(seed uint64, number, ticks int) *scenario {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	s := &scenario{
		number:     number,
		ticks:      ticks,
		r:          r,
		settings:   newSettings(r),
		closedLoop: chance(r, 0.7),
		startDelay: pick(r, 0, 1500*time.Millisecond, 4*time.Second, 20*time.Second, 90*time.Second),
		stopDelay:  pick(r, 0, time.Second, 30*time.Second),
		gateways:   pick(r, 0, 1, 1, 2, 3),
		byGateway:  pick(r, 0, 0.5, 1, 1),
		requests:   pick(r, 0.5, 1, 3, 20),
		grain:      pick(r, 1, 10, 1000, 1e6, 4, 128, 1024),
		ready0:     pick(r, 0, 0, 1, 1, 2, 3, 7, 50),
		offset:     time.Duration(r.IntN(1000)) * time.Millisecond,
	}
	if s.gateways == 0 {
		s.byGateway = 0
		s.ready0 = max(s.ready0, r.IntN(3))
	}
	s.shape, s.load = s.drawLoad()
	if chance(r, 0.5) {
		s.faults = s.drawFaults()
	}
	if chance(r, 0.2) {
		for range 1 + r.IntN(4) {
			from := float64(s.ticks) * 2 * r.Float64()
			s.outages = append(s.outages, [2]float64{from, from + pick(r, 3, 8, 20, 70, 150.)})
		}
		s.faults.change = max(s.faults.change, 0.04)
	}
	return s
}

func (s *scenario) drawFaults() faults {
	r := s.r
	some := func(p, most float64) float64 {
		if chance(r, p) {
			return r.Float64() * most
		}
		return 0
	}
	return faults{
		gatewayGap:   some(0.4, 0.5),
		scrapeGap:    some(0.3, 0.3),
		scrapeError:  some(0.3, 0.5),
		oldStat:      some(0.2, 0.2),
		aheadStat:    some(0.1, 0.1),
		doubleStat:   some(0.2, 0.2),
		podsUnknown:  some(0.2, 0.1),
		podsNotFound: some(0.2, 0.1),
		lateTick:     some(0.4, 0.5),
		extraTick:    some(0.4, 0.3),
		longPause:    some(0.3, 0.04),
		restart:      some(0.3, 0.03),
		change:       some(0.4, 0.05),
	}
}

// drawLoad gives the load in the unit of the metric's target: a pod's target is load 1.
func (s *scenario) drawLoad() (string, func(float64) float64) {
	r := s.r
	length := float64(s.ticks) * 2
	size := pick(r, 0.3, 1, 3, 10, 40, 300)
	at := length * r.Float64()
	switch r.IntN(9) {
	case 0:
		return "constant", func(float64) float64 { return size }
	case 1:
		before := size * pick(r, 0, 0.2, 2, 5)
		return "step", func(t float64) float64 {
			if t < at {
				return before
			}
			return size
		}
	case 2:
		return "ramp", func(t float64) float64 { return size * t / length }
	case 3:
		base, width := size*pick(r, 0, 0.05, 0.5), pick(r, 1, 3, 10, 30.)
		return "spike", func(t float64) float64 {
			if t >= at && t < at+width {
				return size * 5
			}
			return base
		}
	case 4:
		width := pick(r, 5, 30, 90, 200.)
		return "lull", func(t float64) float64 {
			if t >= at && t < at+width {
				return 0
			}
			return size
		}
	case 5:
		period := pick(r, 10, 60, 300.)
		return "wave", func(t float64) float64 { return size * (1 + math.Sin(2*math.Pi*t/period)) / 2 }
	case 6:
		on, off := pick(r, 1, 5, 20.), pick(r, 5, 30, 100.)
		return "on-off", func(t float64) float64 {
			if math.Mod(t, on+off) < on {
				return size
			}
			return 0
		}
	case 7:
		walk, last := size, 0.
		return "walk", func(t float64) float64 {
			for ; last < t; last++ {
				walk = math.Max(0, walk*(0.8+0.4*r.Float64())+size*0.1*(r.Float64()-0.5))
			}
			return walk
		}
	default:
		p := pick(r, 0.02, 0.1, 0.5)
		return "bursts", func(float64) float64 {
			if chance(r, p) {
				return size * 20 * r.Float64()
			}
			return 0
		}
	}
}

func (s *scenario) label() string {
	label := s.shape
	if s.closedLoop {
		label += " closed"
	}
	if s.faults != (faults{}) {
		label += " faults"
	}
	if len(s.outages) > 0 {
		label += " outages"
	}
	return label
}

// round brings a stat to the scenario's grain.
func (s *scenario) round(v float64) float64 { return math.Round(v*s.grain) / s.grain }

// pods of the scenario, as the autoscaler sees them.
type pods struct {
	ready   int
	pending []change
}

type change struct {
	at    time.Time
	ready int
}

func (p *pods) settle(now time.Time) {
	for len(p.pending) > 0 && !p.pending[0].at.After(now) {
		p.ready = p.pending[0].ready
		p.pending = p.pending[1:]
	}
}

func (p *pods) want(ready int, at time.Time) {
	if n := len(p.pending); n > 0 && p.pending[n-1].at.After(at) {
		at = p.pending[n-1].at
	}
	p.pending = append(p.pending, change{at, ready})
}
