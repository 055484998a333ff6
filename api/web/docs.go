package web

import "net/http"

// Operation is what the reference for people says of one request of the API.
type Operation struct {
	ID, Method, Path     string
	Summary, Description string
	Params               []Param
	Answers              []Answer
}

// Param is one parameter.
type Param struct{ Name, In, Description string }

// Answer is one status.
type Answer struct{ Status, Description string }

// Docs shows the reference of the API.
func (p *Pages) Docs(w http.ResponseWriter, r *http.Request, operations []Operation) {
	p.show(w, r, view{template: "docs", data: operations}, p.since())
}
