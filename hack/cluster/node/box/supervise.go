package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	firstRestartDelay = 200 * time.Millisecond
	lastRestartDelay  = 5 * time.Second
	// A component that ran this long is restarted with the first delay again.
	steadyAfter = 10 * time.Second

	startFilePollInterval = 20 * time.Millisecond
)

// ComponentState is what the state file says of each component, by name.
type ComponentState struct {
	Pid      int    `json:"pid"` // in the box's process namespace; 0 while it is down
	Restarts int    `json:"restarts"`
	LastExit string `json:"lastExit,omitempty"`
}

type process struct {
	component Component
	state     ComponentState
	started   time.Time
	delay     time.Duration
}

type supervisor struct {
	stateFile string
	mutex     sync.Mutex
	processes []*process
}

func newSupervisor(plan Plan) *supervisor {
	s := &supervisor{stateFile: plan.StateFile}
	for _, component := range plan.Components {
		s.processes = append(s.processes, &process{component: component, delay: firstRestartDelay})
	}
	return s
}

func (s *supervisor) startAll() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, p := range s.processes {
		if p.component.StartFile != "" {
			go s.startLater(p)
			continue
		}
		if err := p.start(); err != nil {
			return err
		}
	}
	return s.save()
}

func (s *supervisor) startLater(p *process) {
	for {
		if _, err := os.Stat(p.component.StartFile); err == nil {
			break
		}
		time.Sleep(startFilePollInterval)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := p.start(); err != nil {
		s.ended(p, err.Error())
		return
	}
	s.report(p, "started")
}

// reap waits for every process of the box that lost its parent or is a component, and starts components anew.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.ECHILD {
			time.Sleep(firstRestartDelay)
		}
		if err != nil {
			continue
		}
		s.mutex.Lock()
		for _, p := range s.processes {
			if p.state.Pid == pid {
				s.ended(p, describe(status))
			}
		}
		s.mutex.Unlock()
	}
}

func (s *supervisor) ended(p *process, how string) {
	if time.Since(p.started) > steadyAfter {
		p.delay = firstRestartDelay
	}
	delay := p.delay
	p.delay = min(2*delay, lastRestartDelay)
	p.state.Pid = 0
	p.state.Restarts++
	p.state.LastExit = fmt.Sprintf("%s %s", time.Now().UTC().Format(time.RFC3339), how)
	s.report(p, "ended: "+how)
	time.AfterFunc(delay, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if err := p.start(); err != nil {
			s.ended(p, err.Error())
			return
		}
		s.report(p, "started again")
	})
}

func (s *supervisor) report(p *process, what string) {
	fmt.Fprintf(os.Stderr, "%s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), p.component.Name, what)
	if err := s.save(); err != nil {
		fmt.Fprintln(os.Stderr, "box: state file:", err)
	}
}

func (p *process) start() error {
	log, err := os.OpenFile(p.component.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	started, err := os.StartProcess(p.component.Command[0], p.component.Command, &os.ProcAttr{
		Env:   p.component.Env,
		Files: []*os.File{nil, log, log},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", p.component.Name, err)
	}
	p.state.Pid = started.Pid
	p.started = time.Now()
	// The loop in reap waits for it.
	return started.Release()
}

func (s *supervisor) save() error {
	states := make(map[string]ComponentState, len(s.processes))
	for _, p := range s.processes {
		states[p.component.Name] = p.state
	}
	content, err := json.MarshalIndent(states, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(s.stateFile, append(content, '\n'))
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}
