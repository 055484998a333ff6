package web

import "github.com/cloudshare/cloudshare/fsm"

// How a bar of the timeline is drawn: classes of the style sheet. Colours say
// whose an attempt is, these say what became of it.
const (
	worked  = "worked"
	runs    = "runs"
	broke   = "broke"
	halted  = "halted"
	crowded = "crowd"
)

// mark is a way of drawing bars, and what it says.
type mark struct{ Class, Name string }

// marks are all of them, as the legend has them.
var marks = []mark{
	{worked, "succeeded"},
	{runs, "still runs"},
	{broke, "failed, timed out or lost"},
	{halted, "cancelled, stopped or handed back"},
	{crowded, "some ran that are not drawn one by one"},
}

// endOf returns how an attempt is drawn.
func endOf(a *Attempt) string {
	if a.Ended.IsZero() {
		return runs
	}
	switch a.Outcome {
	case fsm.EndFailed.String(), fsm.EndTimedOut.String(), fsm.EndLost.String(), fsm.EndOrphaned.String():
		return broke
	case fsm.EndCancelled.String(), fsm.EndStopped.String(), fsm.EndDeclined.String(), fsm.EndUnopened.String(),
		fsm.EndHandedBack.String(), fsm.EndUnstarted.String():
		return halted
	}
	return worked
}

// useClass has the legend explain a way of drawing.
func (g *gantt) useClass(class string) {
	if g.drawn == nil {
		g.drawn = map[string]bool{}
	}
	g.drawn[class] = true
}

// Marks returns the ways of drawing that the drawing has.
func (g gantt) Marks() (out []mark) {
	for _, m := range marks {
		if g.drawn[m.Class] {
			out = append(out, m)
		}
	}
	return out
}
