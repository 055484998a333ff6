package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// jsonFigure is a figure for programs.
type jsonFigure struct {
	Name     string   `json:"name"`
	Measured *float64 `json:"measured"` // null: nothing was measured
	Limit    float64  `json:"limit,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Aim      string   `json:"aim,omitempty"`
	Verdict  string   `json:"verdict,omitempty"` // met or MISSED
	Peers    string   `json:"peers,omitempty"`
	Note     string   `json:"note,omitempty"`
}

type jsonSheet struct {
	Title string     `json:"title,omitempty"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// writeJSON prints everything as one object.
func (t *table) writeJSON(w io.Writer) error {
	out := struct {
		Machine string       `json:"machine"`
		Figures []jsonFigure `json:"figures"`
		Sheets  []jsonSheet  `json:"sheets,omitempty"`
	}{Machine: t.machine, Figures: []jsonFigure{}}
	for _, f := range t.figures {
		j := jsonFigure{
			Name: f.name, Limit: f.limit, Unit: f.unit, Aim: f.aim.String(), Verdict: f.verdict(),
			Peers: f.peers, Note: f.note,
		}
		if !math.IsNaN(f.measured) {
			j.Measured = &f.measured
		}
		out.Figures = append(out.Figures, j)
	}
	for _, s := range t.sheets {
		out.Sheets = append(out.Sheets, jsonSheet{s.title, s.head, s.rows})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
