// Command box runs the processes of one cluster in namespaces of their own.
//
//	box launch PLAN.json [PARENT_PID]
//
// launch makes a child in new network, mount, process, UTS and IPC namespaces and waits for it. The child is the first
// process of its process namespace, and the kernel kills it when launch ends, however launch ends; with it go all
// processes, mounts and links of the box. So whoever kills launch, or the process PARENT_PID, ends everything.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "box:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: box launch PLAN.json [PARENT_PID]")
	}
	plan, err := readPlan(args[1])
	if err != nil {
		return err
	}
	switch {
	case args[0] == "launch" && len(args) == 2:
		return launch(plan, args[1], 0)
	case args[0] == "launch" && len(args) == 3:
		parent, err := strconv.Atoi(args[2])
		if err != nil {
			return fmt.Errorf("parent process id: %w", err)
		}
		return launch(plan, args[1], parent)
	case args[0] == "init" && os.Getpid() == 1:
		return initialize(plan)
	default:
		return fmt.Errorf("unknown arguments %q", args)
	}
}

func launch(plan Plan, planPath string, parent int) error {
	// The kernel's "parent" of the child's death signal is the thread that made it, so that thread must stay.
	runtime.LockOSThread()
	if parent != 0 {
		if err := dieWith(parent); err != nil {
			return err
		}
	}
	child := exec.Command("/proc/self/exe", "init", planPath)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("new namespaces: %w", err)
	}
	if err := connect(plan.Network, child.Process.Pid); err != nil {
		return fmt.Errorf("network of the box: %w", err)
	}
	if err := writeWhole(plan.PidFile, []byte(strconv.Itoa(child.Process.Pid))); err != nil {
		return err
	}
	return child.Wait()
}

// dieWith ends this process when the process pid ends.
func dieWith(pid int) error {
	descriptor, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("parent process %d: %w", pid, err)
	}
	go func() {
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}, -1)
			if err != unix.EINTR {
				fmt.Fprintf(os.Stderr, "box: parent process %d ended\n", pid)
				os.Exit(0)
			}
		}
	}()
	return nil
}

// writeWhole replaces a file so that readers see the old or the new content, never a part.
func writeWhole(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
