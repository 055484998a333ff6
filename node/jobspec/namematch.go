package jobspec

import "strings"

// MatchName reports whether the name in the sealed text of a payload that JobSpec wrote contains part, which is in
// lower case. The case of the name does not matter.
func MatchName(text []byte, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(textName(text)), part)
}

// textName reads only the name: it comes first.
func textName(text []byte) string {
	p := specParser{jsonScanner: jsonScanner{src: string(text)}}
	if !p.take('{') || p.peek() != '"' {
		return ""
	}
	key, err := p.str()
	if err != nil || key != "name" || !p.take(':') || p.peek() != '"' {
		return ""
	}
	name, err := p.str()
	if err != nil {
		return ""
	}
	return name
}
