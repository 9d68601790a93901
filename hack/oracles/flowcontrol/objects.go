package main

import (
	"fmt"
	"math/rand/v2"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/utils/ptr"
)

// attributes is a request as classification sees it.
type attributes struct {
	User        string   `json:"user"`
	Groups      []string `json:"groups"`
	Verb        string   `json:"verb"`
	IsResource  bool     `json:"isResource,omitempty"`
	APIGroup    string   `json:"apiGroup,omitempty"`
	Resource    string   `json:"resource,omitempty"`
	Subresource string   `json:"subresource,omitempty"`
	Namespace   string   `json:"namespace,omitempty"`
	Path        string   `json:"path,omitempty"`
}

func (a attributes) digest() utilflowcontrol.RequestDigest {
	return utilflowcontrol.RequestDigest{
		User: &user.DefaultInfo{Name: a.User, Groups: a.Groups},
		RequestInfo: &request.RequestInfo{IsResourceRequest: a.IsResource, Verb: a.Verb, APIGroup: a.APIGroup,
			Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Path: a.Path},
	}
}

var (
	userNames  = []string{"alice", "bob", "system:serviceaccount:n1:default", "system:serviceaccount:n2:robot", "system:anonymous"}
	groupNames = []string{"system:authenticated", "system:unauthenticated", "dev", "ops", "system:masters"}
	verbs      = []string{"get", "create", "update", "delete"}
	apiGroups  = []string{"", "serving.knative.dev", "apps"}
	resources  = []string{"services", "services/canary", "routes"}
	namespaces = []string{"n1", "n2", "n3"}
	paths      = []string{"/", "/healthz", "/api/*", "/api/v1/*", "/healthz/"}
	asked      = []string{"/", "/healthz", "/healthz/ping", "/api", "/api/", "/api/v1", "/api/v1/x", "/apis", ""}
)

func some(r *rand.Rand, from []string, most int) []string {
	if r.IntN(3) == 0 {
		return []string{"*"}
	}
	list := []string{}
	for range between(r, 1, most) {
		list = append(list, oneOf(r, from...))
	}
	return list
}

func randomAttributes(r *rand.Rand) attributes {
	a := attributes{User: oneOf(r, userNames...), Groups: []string{}, Verb: oneOf(r, verbs...)}
	for range r.IntN(4) {
		a.Groups = append(a.Groups, oneOf(r, groupNames...))
	}
	if r.IntN(3) > 0 {
		a.IsResource = true
		a.APIGroup, a.Resource = oneOf(r, apiGroups...), oneOf(r, "services", "routes")
		a.Namespace = oneOf(r, "", "n1", "n2", "n3", "n4")
		a.Subresource = oneOf(r, "", "", "canary")
	} else {
		a.Path = oneOf(r, asked...)
	}
	return a
}

func randomSubject(r *rand.Rand) flowcontrolv1.Subject {
	switch r.IntN(3) {
	case 0:
		name := oneOf(r, append(userNames, "*")...)
		return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: name}}
	case 1:
		name := oneOf(r, append(groupNames, "*")...)
		return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}}
	default:
		return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount,
			ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: oneOf(r, namespaces...), Name: oneOf(r, "default", "robot", "*")}}
	}
}

func randomSchemaSpec(r *rand.Rand, levels []string) flowcontrolv1.FlowSchemaSpec {
	spec := flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: oneOf(r, levels...)},
		MatchingPrecedence:         int32(oneOf(r, 1, 2, 100, 100, 500, 1000, 9999)),
	}
	switch r.IntN(3) {
	case 0:
		spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}
	case 1:
		spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByNamespaceType}
	}
	for range r.IntN(3) {
		rule := flowcontrolv1.PolicyRulesWithSubjects{}
		for range between(r, 1, 3) {
			rule.Subjects = append(rule.Subjects, randomSubject(r))
		}
		for range r.IntN(3) {
			rule.ResourceRules = append(rule.ResourceRules, flowcontrolv1.ResourcePolicyRule{Verbs: some(r, verbs, 3),
				APIGroups: some(r, apiGroups, 2), Resources: some(r, resources, 3), Namespaces: some(r, namespaces, 2),
				ClusterScope: r.IntN(2) == 0})
		}
		for range r.IntN(2) {
			rule.NonResourceRules = append(rule.NonResourceRules, flowcontrolv1.NonResourcePolicyRule{Verbs: some(r, verbs, 3), NonResourceURLs: some(r, paths, 2)})
		}
		spec.Rules = append(spec.Rules, rule)
	}
	return spec
}

func randomLevelSpec(r *rand.Rand) flowcontrolv1.PriorityLevelConfigurationSpec {
	limited := &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: ptr.To(int32(oneOf(r, 0, 1, 5, 10, 30, 100))),
		LendablePercent:          ptr.To(int32(oneOf(r, 0, 0, 33, 50, 90, 100))),
	}
	if r.IntN(2) == 0 {
		limited.BorrowingLimitPercent = ptr.To(int32(oneOf(r, 0, 20, 100, 300)))
	}
	if r.IntN(4) == 0 {
		limited.LimitResponse.Type = flowcontrolv1.LimitResponseTypeReject
	} else {
		q := randomQueuing(r, "")
		limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{
			Queues: int32(q.DesiredNumQueues), HandSize: int32(q.HandSize), QueueLengthLimit: int32(q.QueueLengthLimit)}}
	}
	return flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: limited}
}

// brokenLevelSpec is one that the controller pretends not to see.
func brokenLevelSpec(r *rand.Rand) flowcontrolv1.PriorityLevelConfigurationSpec {
	spec := randomLevelSpec(r)
	switch r.IntN(4) {
	case 0:
		spec.Type = flowcontrolv1.PriorityLevelEnablementExempt
	case 1:
		spec = flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementExempt, Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{}}
	case 2:
		spec.Limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue}
	default:
		spec.Limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 8, HandSize: 9, QueueLengthLimit: 1}}
	}
	return spec
}

type named[Spec any] struct {
	Name string `json:"name"`
	Spec Spec   `json:"spec"`
}

func levelName(i int) string  { return fmt.Sprintf("level-%d", i) }
func schemaName(i int) string { return fmt.Sprintf("schema-%d", i) }
