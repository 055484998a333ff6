package jobspec

import "strings"

// MatchName reports whether the name in a payload that JobSpec wrote contains part, which is in lower
// case. The case of the name does not matter.
func MatchName(payload []byte, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(payloadName(payload)), part)
}

// payloadName reads only the name: it comes first, or right after the labels.
func payloadName(payload []byte) string {
	p := specParser{jsonScanner: jsonScanner{src: string(payload)}}
	if !p.take('{') || p.peek() != '"' {
		return ""
	}
	key, err := p.str()
	if err == nil && key == "labels" && p.take(':') {
		if p.skip(0) != nil || !p.take(',') || p.peek() != '"' {
			return ""
		}
		key, err = p.str()
	}
	if err != nil || key != "name" || !p.take(':') || p.peek() != '"' {
		return ""
	}
	name, err := p.str()
	if err != nil {
		return ""
	}
	return name
}
