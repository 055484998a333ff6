package jobspec

import "strings"

// MatchName reports whether the name in a payload that JobSpec wrote has a part,
// in lower case, whatever the case of the name.
func MatchName(payload []byte, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(payloadName(payload)), part)
}

// payloadName reads the name alone: it comes first, or right after the labels.
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
