// Command kube is every Kubernetes program of the local cluster in one file, so that their shared code is linked once.
// The program to be is the base name it was called by (a symlink), or else the first argument: "kube kubelet --help".
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { serve(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { serve(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              func() { serve(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { serve(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() { serve(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 kubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	run, known := programs[name]
	if !known {
		names := make([]string, 0, len(programs))
		for program := range programs {
			names = append(names, program)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "kube: no program %q; there are: %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	run()
}

func serve(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func kubectl() {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck // a bad verbosity is reported by the flag parser
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
