package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Plan is everything a box needs to know; hack/cluster/box-plan.ts writes it.
type Plan struct {
	Hostname string `json:"hostname"`
	// StateFile is where the supervisor keeps the state of the components (see ComponentState).
	StateFile string `json:"stateFile"`
	// PidFile receives the process id of the box's first process, as the host sees it.
	PidFile    string      `json:"pidFile"`
	Network    Network     `json:"network"`
	Mounts     []Mount     `json:"mounts"`
	Sysctls    []Sysctl    `json:"sysctls"`
	Components []Component `json:"components"`
}

// Network is a pair of virtual links: one end on the host, the other, named eth0, in the box.
type Network struct {
	HostLink    string `json:"hostLink"`
	HostAddress string `json:"hostAddress"` // with prefix length
	NodeAddress string `json:"nodeAddress"` // with prefix length
	PodRange    string `json:"podRange"`
	// ServiceRange is routed to the box by the host, and to eth0 inside it: kube-proxy rewrites the destination, but
	// the kernel looks for a route first.
	ServiceRange string `json:"serviceRange"`
}

// Mount is a bind mount of Source, or an empty tmpfs if there is no Source.
type Mount struct {
	Source string `json:"source,omitempty"`
	Target string `json:"target"`
}

// Sysctl is one file below /proc/sys and its value.
type Sysctl struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Component is a process that runs for as long as the box does.
type Component struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Env     []string `json:"env"`
	LogFile string   `json:"logFile"`
	// StartFile, if given, holds the component back until a file of this name exists.
	StartFile string `json:"startFile,omitempty"`
}

func readPlan(path string) (Plan, error) {
	var plan Plan
	content, err := os.ReadFile(path)
	if err != nil {
		return plan, err
	}
	if err := json.Unmarshal(content, &plan); err != nil {
		return plan, fmt.Errorf("%s: %w", path, err)
	}
	return plan, nil
}
