package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const small = `{"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
"paths": {
 "/livez": {"get": {"summary": "Alive", "responses": {"200": {"description": "OK"}}}},
 "/v1/things/{id}": {"get": {"summary": "One thing", "description": "Or none.",
  "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}, "description": "a|b"},
   {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}}],
  "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
   "404": {"description": "Not Found"}}}}},
"components": {"schemas": {"Thing": {"type": "object", "properties": {
 "kind": {"type": ["string", "null"], "enum": ["a", "b"]}, "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}}}}}}`

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMarkdown(t *testing.T) {
	doc, err := load(written(t, small))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	document(&b, doc)
	for _, want := range []string{
		"| [`GET /v1/things/{id}`](#get-v1thingsid) | One thing |\n| [`GET /livez`](#get-livez) | Alive |\n",
		"### `GET /v1/things/{id}`\n\nOne thing. Or none.\n",
		"| `id` | path | string | a\\|b |\n| `limit` | query | integer | 1 to 9; default `3` |\n",
		"Answers 200 with `application/json` of [Thing](#thing); else 404.\n",
		"| `kind` | string or null | `a`, `b` |\n| `parts` | list of [Thing](#thing) |  |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}

// TestInvalid: what is no OpenAPI is refused, and says where.
func TestInvalid(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(small, `"type": "integer"`, `"type": "int"`, 1):          "int",
		strings.Replace(small, "#/components/schemas/Thing", "#/none", 1):        "none",
		strings.Replace(small, `"description": "Not Found"`, `"describe": 1`, 1): "description of the response",
		"{": "openapi.json",
	} {
		if _, err := load(written(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	in, out := written(t, small), filepath.Join(t.TempDir(), "api.md")
	if err := run(in, out, ""); err != nil {
		t.Fatal(err)
	}
	if err := run(in, "", out); err != nil {
		t.Errorf("what was just written is stale: %v", err)
	}
	if err := os.WriteFile(out, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(in, "", out); err == nil || !strings.Contains(err.Error(), "make docs") {
		t.Errorf("a stale file: %v", err)
	}
}
