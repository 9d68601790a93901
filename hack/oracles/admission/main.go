// Admission as knative.dev/serving does it: reads one JSON object a line from standard input, writes its verdict.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	authv1 "k8s.io/api/authentication/v1"
	"knative.dev/pkg/apis"
	autoscalerconfig "knative.dev/serving/pkg/autoscaler/config"
	"knative.dev/serving/pkg/apis/config"
	v1 "knative.dev/serving/pkg/apis/serving/v1"
)

type request struct {
	Kind       string            `json:"kind"`
	Object     json.RawMessage   `json:"object"`
	Old        json.RawMessage   `json:"old,omitempty"`
	Features   map[string]string `json:"features,omitempty"`
	Defaults   map[string]string `json:"defaults,omitempty"`
	Autoscaler map[string]string `json:"autoscaler,omitempty"`
}

type verdict struct {
	// Empty: accepted.
	Error     string          `json:"error"`
	Defaulted json.RawMessage `json:"defaulted"`
}

type admitted interface {
	apis.Defaultable
	apis.Validatable
}

func decode(kind string, text json.RawMessage) (admitted, error) {
	var object admitted
	switch kind {
	case "Service":
		object = &v1.Service{}
	case "Configuration":
		object = &v1.Configuration{}
	case "Revision":
		object = &v1.Revision{}
	case "Route":
		object = &v1.Route{}
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	return object, json.Unmarshal(text, object)
}

func judge(r request) (verdict, error) {
	features, err := config.NewFeaturesConfigFromMap(r.Features)
	if err != nil {
		return verdict{}, err
	}
	defaults, err := config.NewDefaultsConfigFromMap(r.Defaults)
	if err != nil {
		return verdict{}, err
	}
	autoscaler, err := autoscalerconfig.NewConfigFromMap(r.Autoscaler)
	if err != nil {
		return verdict{}, err
	}
	ctx := config.ToContext(context.Background(),
		&config.Config{Features: features, Defaults: defaults, Autoscaler: autoscaler})
	ctx = apis.WithUserInfo(ctx, &authv1.UserInfo{Username: "alice"})
	object, err := decode(r.Kind, r.Object)
	if err != nil {
		return verdict{}, err
	}
	if len(r.Old) > 0 {
		old, err := decode(r.Kind, r.Old)
		if err != nil {
			return verdict{}, err
		}
		ctx = apis.WithinUpdate(ctx, old)
	} else {
		ctx = apis.WithinCreate(ctx)
	}
	object.SetDefaults(ctx)
	defaulted, err := json.Marshal(object)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{Defaulted: defaulted}
	if problem := object.Validate(ctx).Filter(apis.ErrorLevel); problem != nil {
		v.Error = problem.Error()
	}
	return v, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fail(err)
		}
		v, err := judge(r)
		if err != nil {
			fail(err)
		}
		if err := out.Encode(v); err != nil {
			fail(err)
		}
	}
	if err := lines.Err(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
