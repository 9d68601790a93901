package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// initialize is the box's first process: it prepares the namespaces, then supervises the components until it is killed.
func initialize(plan Plan) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if err := unix.Sethostname([]byte(plan.Hostname)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := mountAll(plan.Mounts); err != nil {
		return err
	}
	if err := join(plan.Network); err != nil {
		return err
	}
	for _, sysctl := range plan.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", sysctl.Path), []byte(sysctl.Value), 0o644); err != nil {
			return fmt.Errorf("sysctl: %w", err)
		}
	}
	supervisor := newSupervisor(plan)
	if err := supervisor.startAll(); err != nil {
		return err
	}
	go supervisor.reap()
	<-stop
	return nil
}

func mountAll(mounts []Mount) error {
	// Nothing that is mounted here may be seen on the host, nor later host mounts here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount of /proc: %w", err)
	}
	for _, mount := range mounts {
		var err error
		if mount.Source == "" {
			err = unix.Mount("tmpfs", mount.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
		} else {
			err = unix.Mount(mount.Source, mount.Target, "", unix.MS_BIND|unix.MS_REC, "")
		}
		if err != nil {
			return fmt.Errorf("mount of %s: %w", mount.Target, err)
		}
	}
	// Kubernetes passes mounts on to containers (mountPropagation), so inside the box they are shared.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("shared mounts: %w", err)
	}
	return nil
}
