package main

import (
	"math/rand/v2"
	"sort"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/apihelpers"
	"k8s.io/apiserver/pkg/util/shufflesharding"
)

// Hands dealt and flows hashed.
type dealerScenario struct {
	header
	Queues   int    `json:"queues"`
	HandSize int    `json:"handSize"`
	Error    bool   `json:"error,omitempty"`
	Deals    []deal `json:"deals"`
}

type deal struct {
	Schema string `json:"schema"`
	Flow   string `json:"flow"`
	Hash   string `json:"hash"`
	Hand   []int  `json:"hand"`
}

func runDealer(h header, r *rand.Rand) dealerScenario {
	s := dealerScenario{header: h, Queues: oneOf(r, 1, 2, 3, 10, 64, 100, 128, 512, 1000, 1024, 30000, 1<<26), HandSize: between(r, 0, 16)}
	dealer, err := shufflesharding.NewDealer(s.Queues, s.HandSize)
	s.Error = err != nil
	for range 20 {
		d := deal{Schema: oneOf(r, "global-default", "workload-low", "ünïcode-𝒳"), Flow: itoa(r.Uint64N(1 << uint(r.IntN(64))))}
		hash := hashFlowID(d.Schema, d.Flow)
		d.Hash = itoa(hash)
		if err == nil {
			d.Hand = dealer.DealIntoHand(hash, nil)
		}
		s.Deals = append(s.Deals, d)
	}
	return s
}

// Seats divided within bounds.
type allocationScenario struct {
	header
	Problems []allocation `json:"problems"`
}

type allocation struct {
	Sum     int          `json:"sum"`
	Classes [][3]float64 `json:"classes"` // target, lower bound, upper bound
	Seats   []float64    `json:"seats"`   // absent: impossible
	Fair    float64      `json:"fair"`
}

func runAllocation(h header, r *rand.Rand) allocationScenario {
	s := allocationScenario{header: h}
	for range 20 {
		a := allocation{}
		var items []allocProblemItem
		for range between(r, 1, 8) {
			low := float64(r.IntN(oneOf(r, 1, 5, 50)))
			high := low + float64(r.IntN(oneOf(r, 1, 10, 600)))
			target := low + oneOf(r, 0, r.Float64(), r.Float64()*100)
			if r.IntN(40) == 0 {
				target = low - 1
			}
			items = append(items, allocProblemItem{target: target, lowerBound: low, upperBound: high})
			a.Classes = append(a.Classes, [3]float64{target, low, high})
			a.Sum += int(low) + r.IntN(1+int(high-low))
		}
		if r.IntN(20) == 0 {
			a.Sum = r.IntN(1000) - 5
		}
		seats, fair, err := computeConcurrencyAllocation(a.Sum, items)
		if err == nil {
			a.Seats, a.Fair = seats, fair
		}
		s.Problems = append(s.Problems, a)
	}
	return s
}

// Refusals, each [seconds since the one before, Retry-After then].
type retryScenario struct {
	header
	Refusals [][2]int64 `json:"refusals"`
}

func runRetry(h header, r *rand.Rand) retryScenario {
	s := retryScenario{header: h}
	now := epoch
	tracker := newDroppedRequestsTracker(func() time.Time { return now })
	for range 40 {
		rate := oneOf(r, 0, 1, 2, 5, 20)
		pause := int64(oneOf(r, 1, 1, 1, 1, 2, 3, 10, 40))
		for i := range rate {
			passed := int64(0)
			if i == 0 {
				passed = pause
			}
			now = now.Add(time.Duration(passed) * time.Second)
			recordDroppedRequest(tracker, "level")
			s.Refusals = append(s.Refusals, [2]int64{passed, getRetryAfter(tracker, "level")})
		}
	}
	return s
}

// Which schema comes first that matches; empty: none.
type classifyScenario struct {
	header
	Schemas  []named[flowcontrolv1.FlowSchemaSpec] `json:"schemas"`
	Requests []classified                          `json:"requests"`
}

type classified struct {
	Attributes attributes `json:"a"`
	Schema     string     `json:"schema"`
}

func runClassify(h header, r *rand.Rand) classifyScenario {
	s := classifyScenario{header: h}
	var all apihelpers.FlowSchemaSequence
	for i := range between(r, 1, 20) {
		f := schema(schemaName(i), randomSchemaSpec(r, []string{"level"}))
		all = append(all, f)
		s.Schemas = append(s.Schemas, named[flowcontrolv1.FlowSchemaSpec]{f.Name, f.Spec})
	}
	sort.Sort(all)
	for range 30 {
		c := classified{Attributes: randomAttributes(r)}
		for _, f := range all {
			if matchesFlowSchema(c.Attributes.digest(), f) {
				c.Schema = f.Name
				break
			}
		}
		s.Requests = append(s.Requests, c)
	}
	return s
}

// The mandatory and suggested objects.
type bootstrapScenario struct {
	header
	MandatoryLevels  []named[flowcontrolv1.PriorityLevelConfigurationSpec] `json:"mandatoryLevels"`
	SuggestedLevels  []named[flowcontrolv1.PriorityLevelConfigurationSpec] `json:"suggestedLevels"`
	MandatorySchemas []named[flowcontrolv1.FlowSchemaSpec]                 `json:"mandatorySchemas"`
	SuggestedSchemas []named[flowcontrolv1.FlowSchemaSpec]                 `json:"suggestedSchemas"`
}

func runBootstrap(h header) bootstrapScenario {
	levels := func(list []*flowcontrolv1.PriorityLevelConfiguration) (all []named[flowcontrolv1.PriorityLevelConfigurationSpec]) {
		for _, l := range list {
			all = append(all, named[flowcontrolv1.PriorityLevelConfigurationSpec]{l.Name, l.Spec})
		}
		return all
	}
	schemas := func(list []*flowcontrolv1.FlowSchema) (all []named[flowcontrolv1.FlowSchemaSpec]) {
		for _, f := range list {
			all = append(all, named[flowcontrolv1.FlowSchemaSpec]{f.Name, f.Spec})
		}
		return all
	}
	return bootstrapScenario{h, levels(bootstrap.MandatoryPriorityLevelConfigurations), levels(bootstrap.SuggestedPriorityLevelConfigurations),
		schemas(bootstrap.MandatoryFlowSchemas), schemas(bootstrap.SuggestedFlowSchemas)}
}
