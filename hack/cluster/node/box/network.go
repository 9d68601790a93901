package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	nodeLink        = "eth0"
	linkWaitTimeout = 10 * time.Second
)

// connect makes the pair of links between the host and the network namespace of process pid, and the host's routes.
// It all disappears with that namespace.
func connect(network Network, pid int) error {
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: network.HostLink},
		PeerName:      nodeLink,
		PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("link %s: %w", network.HostLink, err)
	}
	if err := bringUp(network.HostLink, network.HostAddress); err != nil {
		return err
	}
	node, _, err := net.ParseCIDR(network.NodeAddress)
	if err != nil {
		return err
	}
	for _, destination := range []string{network.PodRange, network.ServiceRange} {
		if err := addRoute(network.HostLink, destination, netlink.Route{Gw: node}); err != nil {
			return err
		}
	}
	return nil
}

// join sets up the box's side, once the host has made the links.
func join(network Network) error {
	if err := awaitLink(nodeLink); err != nil {
		return err
	}
	if err := bringUp("lo", ""); err != nil {
		return err
	}
	if err := bringUp(nodeLink, network.NodeAddress); err != nil {
		return err
	}
	node, _, err := net.ParseCIDR(network.NodeAddress)
	if err != nil {
		return err
	}
	return addRoute(nodeLink, network.ServiceRange, netlink.Route{Src: node, Scope: netlink.SCOPE_LINK})
}

func awaitLink(name string) error {
	for deadline := time.Now().Add(linkWaitTimeout); ; time.Sleep(5 * time.Millisecond) {
		_, err := netlink.LinkByName(name)
		var missing netlink.LinkNotFoundError
		if err == nil || !errors.As(err, &missing) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("link %s did not appear within %s", name, linkWaitTimeout)
		}
	}
}

func bringUp(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	if address != "" {
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, parsed); err != nil {
			return fmt.Errorf("address %s of %s: %w", address, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

func addRoute(linkName, destination string, route netlink.Route) error {
	link, err := netlink.LinkByName(linkName)
	if err != nil {
		return fmt.Errorf("link %s: %w", linkName, err)
	}
	_, route.Dst, err = net.ParseCIDR(destination)
	if err != nil {
		return err
	}
	route.LinkIndex = link.Attrs().Index
	if err := netlink.RouteAdd(&route); err != nil {
		return fmt.Errorf("route to %s by %s: %w", destination, linkName, err)
	}
	return nil
}
