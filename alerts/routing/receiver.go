package routing

import (
	"fmt"
	"net/mail"
	"net/url"
	"strings"

	"firstbreach/internal/strictyaml"
)

// SlackURLFile is where the Alertmanager reads the address of Slack's webhook, a secret.
const SlackURLFile = "/etc/alertmanager/secrets/slack_api_url"

// receiver is where an owner's alerts go: to one that stands in the base file, or to a new one.
type receiver struct {
	name   string
	config map[string]any
}

// receivers by name.
type knownReceivers struct {
	list  []any
	names map[string]bool
}

func (k knownReceivers) has(name string) bool { return k.names[name] }

func receivers(base Base) (knownReceivers, []strictyaml.Problem) {
	k := knownReceivers{names: map[string]bool{}}
	var problems []strictyaml.Problem
	for i, r := range base.Receivers {
		name, _ := r["name"].(string)
		if name == "" {
			problems = append(problems, strictyaml.Problem{File: base.Path, Key: fmt.Sprintf("receivers[%d].name", i), Message: "is missing", Fix: "write the receiver's name"})
			continue
		}
		k.names[name] = true
		k.list = append(k.list, r)
	}
	return k, problems
}

// The forms that a contact may have.
const forms = `write "#channel" for Slack, an e-mail address, an http(s) address for a webhook, or "receiver:NAME" for a receiver of the file that --alertmanager.base names`

// receiver reads a contact. fix is "" when it can be reached.
func (o owner) receiver(known knownReceivers, base Base) (r receiver, fix string) {
	r.name = o.name
	if name, ok := strings.CutPrefix(o.Contact, "receiver:"); ok {
		if !known.has(name) {
			where := base.Path
			if where == "" {
				return r, fmt.Sprintf("name the file that has receiver %s with --alertmanager.base", name)
			}
			return r, fmt.Sprintf("add receiver %s to %s, or name one that is there", name, where)
		}
		return receiver{name: name}, ""
	}
	if known.has(o.name) || o.name == Default {
		return r, fmt.Sprintf("write contact: \"receiver:%s\", or rename the owner: there is a receiver of that name already", o.name)
	}
	switch contact := o.Contact; {
	case strings.HasPrefix(contact, "#") && len(contact) > 1:
		r.config = settings(o.name, "slack_configs", map[string]any{
			"channel": contact, "api_url_file": SlackURLFile, "send_resolved": true,
			"title": `{{ template "firstbreach.title" . }}`, "text": `{{ template "firstbreach.text" . }}`,
		})
	case strings.HasPrefix(contact, "http://"), strings.HasPrefix(contact, "https://"):
		if u, err := url.Parse(contact); err != nil || u.Host == "" || u.User != nil {
			return r, "write a web address without a password; a secret goes into a receiver of your own: " + forms
		}
		r.config = settings(o.name, "webhook_configs", map[string]any{"url": contact, "send_resolved": true})
	case strings.Contains(contact, "@"):
		a, err := mail.ParseAddress(contact)
		if err != nil {
			return r, forms
		}
		if base.Global["smtp_smarthost"] == nil {
			return r, "a mail needs a server: set global.smtp_smarthost and smtp_from in the file that --alertmanager.base names"
		}
		r.config = settings(o.name, "email_configs", map[string]any{
			"to": a.Address, "send_resolved": true,
			"headers": map[string]any{"Subject": `{{ template "firstbreach.title" . }}`}, "text": `{{ template "firstbreach.text" . }}`,
		})
	default:
		return r, forms
	}
	return r, ""
}

func settings(name, kind string, config map[string]any) map[string]any {
	return map[string]any{"name": name, kind: []any{config}}
}
