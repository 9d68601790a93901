// Command flowcontrol drives the priority and fairness of k8s.io/apiserver through generated scenarios and writes what it
// did, one JSON line per scenario. The same seed and number give the same line.
//
//	flowcontrol -seed 1 -from 0 -count 300 > scenarios.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// header begins every scenario.
type header struct {
	Number int    `json:"n"`
	Kind   string `json:"kind"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func itoa(u uint64) string { return strconv.FormatUint(u, 10) }

func atou(s string) uint64 {
	u, err := strconv.ParseUint(s, 10, 64)
	must(err)
	return u
}

// scenario makes and runs one scenario; its kind goes by its number. Of five, three are queue sets, one is a whole
// controller, and one compares a part.
func scenario(seed uint64, number int) any {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	of := func(kind string) header { return header{Number: number, Kind: kind} }
	switch {
	case number == 0:
		return runBootstrap(of("bootstrap"))
	case number%5 < 3:
		return runQueueSet(of("queueset"), r)
	case number%5 == 3:
		return runController(of("controller"), r)
	}
	switch number / 5 % 4 {
	case 0:
		return runDealer(of("dealer"), r)
	case 1:
		return runAllocation(of("allocation"), r)
	case 2:
		return runRetry(of("retry"), r)
	default:
		return runClassify(of("classify"), r)
	}
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of all scenarios")
	from := flag.Int("from", 0, "number of the first scenario")
	count := flag.Int("count", 1, "how many scenarios")
	bench := flag.Bool("bench", false, "instead, time what standard input asks for (see bench.go)")
	flag.Parse()
	klog.SetLogger(logr.Discard()) // it warns of what we do on purpose

	if *bench {
		benchmarkAll()
		return
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for number := *from; number < *from+*count; number++ {
		must(encoder.Encode(scenario(*seed, number)))
	}
	must(out.Flush())
}
