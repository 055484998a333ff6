package jobspec

// Change sets the fields that a JSON object names, as ParseSpec reads them, and leaves the others; the whole is checked
// as if it had been submitted. The error is a *SpecError, and the spec is as before then.
//
// REQUIRES: the object names no list and no map of the spec: what these have would be shared or added to.
func (s *Spec) Change(object []byte) error {
	p := specParser{jsonScanner: jsonScanner{src: string(object)}, spec: *s}
	if err := p.document(); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	*s = p.spec
	return nil
}
