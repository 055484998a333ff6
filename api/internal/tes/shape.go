package tes

// Bounds of a text before it is read: one of 8 MiB would take up to sixty times as much memory otherwise.
const (
	// maxValues is how many values a task's document may have, fields and elements of lists together: 64 executors
	// with a thousand arguments each are as many.
	maxValues = 100_000
	// maxDepth is how many objects and lists may be in one another: six are in a task.
	maxDepth = 32
)

// checkShape refuses a text that has too many values, or has them in one another too deep. It goes through it once and
// takes no memory. Whether the text is JSON, who reads it then says: up to where it is, the counts are right.
func checkShape(body []byte) error {
	values, depth, quoted := 1, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			values++
			depth++
		case c == '}', c == ']':
			depth--
		case c == ',':
			values++
		}
		switch {
		case values > maxValues:
			return bad("body", "has more than %d values: make several tasks of it, or an input of the list", maxValues)
		case depth > maxDepth:
			return bad("body", "has more than %d objects and lists in one another: a task has six", maxDepth)
		}
	}
	return nil
}
