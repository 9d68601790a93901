package main

import (
	"net/http/httptest"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/server/mux"
)

var dumpURLs = []string{
	"/debug/api_priority_and_fairness/dump_priority_levels",
	"/debug/api_priority_and_fairness/dump_queues",
	"/debug/api_priority_and_fairness/dump_requests",
	"/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1",
}

// dumps asks the original for its debug dumps, as somebody with a browser would. After the head, which stays first, the lines
// are in order of their letters: the original walks through maps. Queues without requests are left out.
func (c controller) dumps() map[string][]string {
	handler := mux.NewPathRecorderMux("oracle")
	c.iface.Install(handler)
	dumps := map[string][]string{}
	for _, url := range dumpURLs {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", url, nil))
		lines := strings.Split(strings.TrimSuffix(answer.Body.String(), "\n"), "\n")
		slices.Sort(lines[1:])
		dumps[url] = slices.DeleteFunc(lines, isIdleQueue)
	}
	return dumps
}

// isIdleQueue knows a line of dump_queues by its unit.
func isIdleQueue(line string) bool {
	cells := strings.Split(line, ",")
	return strings.HasSuffix(line, "ss") && strings.TrimSpace(cells[2]) == "0" && strings.TrimSpace(cells[3]) == "0"
}
