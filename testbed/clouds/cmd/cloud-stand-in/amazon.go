package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// amazon has stacks of CloudFormation with one cluster of EKS each.
type amazon struct {
	clusters *clusters
	faults   *faults

	mutex  sync.Mutex
	stacks map[string]*stack
}

type stack struct {
	Name     string
	Status   string
	Reason   string
	Template template
	Tags     map[string]string
	text     string
	events   []event
	cluster  *cluster
}

type event struct {
	Part   string `xml:"LogicalResourceId"`
	Status string `xml:"ResourceStatus"`
	Reason string `xml:"ResourceStatusReason,omitempty"`
}

type template struct {
	Resources map[string]struct {
		Type       string
		Properties map[string]any
	}
	Outputs map[string]any
}

func newAmazon(clusters *clusters, faults *faults) *amazon {
	return &amazon{clusters: clusters, faults: faults, stacks: map[string]*stack{}}
}

func (a *amazon) state() any {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	found := []any{}
	for _, one := range a.stacks {
		found = append(found, map[string]any{
			"name": one.Name, "status": one.Status, "template": one.Template, "tags": one.Tags,
		})
	}
	return found
}

func (a *amazon) disown() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, one := range a.stacks {
		one.Tags = map[string]string{}
	}
}

func (a *amazon) refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	var escaped strings.Builder
	xml.EscapeText(&escaped, []byte(message))
	fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message>"+
		"</Error></ErrorResponse>", code, escaped.String())
}

func (a *amazon) invalid(w http.ResponseWriter, message string) {
	a.refuse(w, 400, "ValidationError", message)
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	form, parsed := url.ParseQuery(string(body))
	if err != nil || parsed != nil {
		a.refuse(w, 400, "MalformedInput", "the body is no form")
		return
	}
	code, message := refusal(r, "cloudformation", string(body))
	switch {
	case a.faults.broke(w):
	case a.faults.take("throttle"):
		a.refuse(w, 400, "Throttling", "Rate exceeded")
	case a.faults.take("unavailable"):
		a.refuse(w, 503, "ServiceUnavailable", "Service Unavailable")
	case code != "":
		a.refuse(w, 403, code, message)
	case form.Get("Version") != "2010-05-15":
		a.refuse(w, 400, "InvalidAction", "Could not find operation for version "+form.Get("Version"))
	default:
		a.act(w, form)
	}
}

func (a *amazon) act(w http.ResponseWriter, form url.Values) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	name := form.Get("StackName")
	one := a.stacks[name]
	action := form.Get("Action")
	if one == nil && action != "CreateStack" && action != "DeleteStack" {
		a.invalid(w, "Stack with id "+name+" does not exist")
		return
	}
	switch action {
	case "DescribeStacks":
		a.describe(w, one)
	case "DescribeStackEvents":
		var text strings.Builder
		for index := len(one.events) - 1; index >= 0; index-- {
			part, _ := xml.Marshal(one.events[index])
			text.WriteString("<member>" + strings.TrimSuffix(strings.TrimPrefix(string(part), "<event>"), "</event>") + "</member>")
		}
		a.answer(w, action, "<StackEvents>"+text.String()+"</StackEvents>")
	case "CreateStack":
		if one != nil {
			a.refuse(w, 400, "AlreadyExistsException", "Stack ["+name+"] already exists")
			return
		}
		a.change(w, form, &stack{Name: name, Tags: map[string]string{
			form.Get("Tags.member.1.Key"): form.Get("Tags.member.1.Value"),
		}}, action)
	case "UpdateStack":
		if strings.HasSuffix(one.Status, "_IN_PROGRESS") || a.faults.take("busy") {
			a.invalid(w, "Stack:"+name+" is in UPDATE_IN_PROGRESS state and can not be updated.")
			return
		}
		a.change(w, form, one, action)
	case "DeleteStack":
		if one != nil && one.Status != "DELETE_IN_PROGRESS" {
			one.set("DELETE_IN_PROGRESS", "User Initiated")
			go a.remove(one)
		}
		a.answer(w, action, "")
	default:
		a.refuse(w, 400, "InvalidAction", "Could not find operation "+action)
	}
}

func (a *amazon) answer(w http.ResponseWriter, action, result string) {
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>", action, result)
}

func (a *amazon) describe(w http.ResponseWriter, one *stack) {
	member := func(pairs ...string) string {
		var text strings.Builder
		for index := 0; index < len(pairs); index += 2 {
			fmt.Fprintf(&text, "<%[1]s>", pairs[index])
			xml.EscapeText(&text, []byte(pairs[index+1]))
			fmt.Fprintf(&text, "</%[1]s>", pairs[index])
		}
		return "<member>" + text.String() + "</member>"
	}
	outputs, tags := "", ""
	if one.cluster != nil {
		outputs = member("OutputKey", "Endpoint", "OutputValue", "https://"+one.cluster.address()) +
			member("OutputKey", "CertificateAuthority", "OutputValue", a.clusters.ca())
	}
	for key, value := range one.Tags {
		tags += member("Key", key, "Value", value)
	}
	text := member("StackName", one.Name, "StackStatus", one.Status, "StackStatusReason", one.Reason)
	text = strings.TrimSuffix(text, "</member>") +
		"<Outputs>" + outputs + "</Outputs><Tags>" + tags + "</Tags></member>"
	a.answer(w, "DescribeStacks", "<Stacks>"+text+"</Stacks>")
}

func (s *stack) set(status, reason string) {
	s.Status, s.Reason = status, reason
	s.events = append(s.events, event{Part: s.Name, Status: status, Reason: reason})
}

// nodes is what the template says of the group of nodes, and wrong what is
// wrong with it.
func (t *template) nodes() (count int, wrong string) {
	if t.Resources["Cluster"].Type != "AWS::EKS::Cluster" || t.Resources["Nodes"].Type != "AWS::EKS::Nodegroup" {
		return 0, "Template format error: no cluster"
	}
	scaling, _ := t.Resources["Nodes"].Properties["ScalingConfig"].(map[string]any)
	number := func(name string) int {
		found, _ := scaling[name].(float64)
		return int(found)
	}
	count = number("DesiredSize")
	if count < number("MinSize") || count > number("MaxSize") {
		return 0, "desired capacity is not between minimum and maximum"
	}
	return count, ""
}

// change makes a stack, or changes it.
func (a *amazon) change(w http.ResponseWriter, form url.Values, one *stack, action string) {
	if form.Get("Capabilities.member.1") != "CAPABILITY_IAM" {
		a.refuse(w, 400, "InsufficientCapabilitiesException", "Requires capabilities : [CAPABILITY_IAM]")
		return
	}
	text := form.Get("TemplateBody")
	var parsed template
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		a.invalid(w, "Template format error: "+err.Error())
		return
	}
	count, wrong := parsed.nodes()
	if wrong != "" {
		a.invalid(w, wrong)
		return
	}
	if text == one.text {
		a.invalid(w, "No updates are to be performed.")
		return
	}
	kind := strings.ToUpper(strings.TrimSuffix(action, "Stack"))
	one.set(kind+"_IN_PROGRESS", "User Initiated")
	a.stacks[one.Name] = one
	quota := a.faults.take("quota")
	go func() {
		var err error
		made := one.cluster
		switch {
		case quota:
			time.Sleep(a.clusters.delay)
			err = fmt.Errorf("You've reached your quota for maximum Fleet Requests for this account")
		case made == nil:
			name := one.Name
			made, err = a.clusters.make(name, count, func(token string) bool { return isTokenOf(name, token) })
		default:
			err = made.resize(count)
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		if err != nil {
			one.events = append(one.events,
				event{Part: "Nodes", Status: kind + "_FAILED", Reason: err.Error()},
				event{Part: "Cluster", Status: kind + "_FAILED", Reason: "Resource creation cancelled"})
			status := "ROLLBACK_COMPLETE"
			if kind == "UPDATE" {
				status = "UPDATE_ROLLBACK_COMPLETE"
			}
			one.set(status, "")
			return
		}
		one.cluster, one.text, one.Template = made, text, parsed
		one.set(kind+"_COMPLETE", "")
	}()
	a.answer(w, action, "<StackId>arn:aws:cloudformation:"+one.Name+"</StackId>")
}

func (a *amazon) remove(one *stack) {
	time.Sleep(a.clusters.delay)
	if one.cluster != nil {
		one.cluster.remove()
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.stacks, one.Name)
}
