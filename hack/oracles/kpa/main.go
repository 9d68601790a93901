// Command kpa drives knative.dev/serving's own autoscaler and metric windows through generated scenarios and writes what
// they answered, one JSON line per scenario (see trace.go for the format). The same seed and number give the same line.
//
//	kpa -seed 1 -from 0 -count 300 -ticks 200 > scenarios.jsonl
//	kpa -bench
package main

import (
	"bufio"
	"flag"
	"os"
	"testing"
	"testing/synctest"
)

func main() {
	seed := flag.Uint64("seed", 1, "seed of all scenarios")
	from := flag.Int("from", 0, "number of the first scenario")
	count := flag.Int("count", 1, "how many scenarios")
	ticks := flag.Int("ticks", 200, "autoscaler ticks per scenario")
	bench := flag.Bool("bench", false, "measure the original's decisions instead (see bench.go)")
	testing.Init()
	flag.Parse()
	if *bench {
		if err := benchmark(os.Stdout); err != nil {
			panic(err)
		}
		return
	}

	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	// The testing package reports to standard output, which is for traces alone.
	os.Stdout = os.Stderr
	// The original reads the clock itself in places; a synctest bubble gives it one that only we move. Bubbles want a
	// *testing.T, so one test is run by hand.
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "scenarios",
		F: func(t *testing.T) {
			var line []byte
			for number := *from; number < *from+*count; number++ {
				synctest.Test(t, func(*testing.T) {
					line = run(newScenario(*seed, number, *ticks)).appendJSON(line[:0])
				})
				if _, err := out.Write(line); err != nil {
					t.Fatal(err)
				}
			}
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
		},
	}}, nil, nil)
}
