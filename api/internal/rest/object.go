package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

// errTwice reports a field that stands twice, of which only one would count.
var errTwice = errors.New("stands twice")

// Bodies read what clients send.
type Bodies interface {
	// Read reads a whole body.
	Read(w http.ResponseWriter, r *http.Request) ([]byte, error)
}

// ReadObject reads a JSON object of known fields, each at most once, and none of them null.
func ReadObject(w http.ResponseWriter, r *http.Request, bodies Bodies, to any) error {
	if err := ContentType(r, wire.TypeJSON); err != nil {
		return err
	}
	body, err := bodies.Read(w, r)
	if err != nil {
		return err
	}
	if !json.Valid(body) {
		return malformed("it is no valid JSON, or more than one value")
	}
	name, err := checkFields(body)
	switch {
	case errors.Is(err, errTwice):
		return malformed(problem.OneLine(name) + " stands twice")
	case err != nil:
		return problem.BadField(name, "", err.Error())
	}
	if err = DecodeKnown(body, to); err != nil {
		return badBody(err)
	}
	return nil
}

// checkFields looks at the fields of a valid JSON document; the error is about the one that it names.
func checkFields(body []byte) (name string, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return "body", errors.New("must be a JSON object")
	}
	for seen := map[string]bool{}; dec.More(); {
		token, err := dec.Token()
		if err != nil {
			return "body", err // not of a valid document
		}
		name = fmt.Sprint(token)
		var value json.RawMessage
		if err = dec.Decode(&value); err != nil {
			return name, err // likewise
		}
		switch {
		case seen[name]:
			return name, errTwice
		case string(value) == "null":
			return name, errors.New("is null: give a value, or leave it out")
		}
		seen[name] = true
	}
	return "", nil
}

// DecodeKnown reads one value, none if there is no text, and refuses fields that it does not know.
func DecodeKnown(text []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(to)
	if errors.Is(err, io.EOF) {
		return nil // left out
	}
	return err
}

func malformed(why string) error {
	return problem.New(http.StatusBadRequest, "malformed", "The body is not a JSON document", why)
}

// badBody words JSON that is not what was to be sent.
func badBody(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return problem.BadField(kind.Field, "", "must be "+kindName(kind))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return problem.BadField(strings.Trim(name, `"`), "", "is no field of this request; /docs shows which there are")
	}
	return problem.BadField("body", "", err.Error())
}

func kindName(e *json.UnmarshalTypeError) string {
	switch e.Type.String() {
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	}
	return "of another type"
}
