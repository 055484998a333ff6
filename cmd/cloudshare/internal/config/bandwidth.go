package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// parseIO reads sandbox.io: words of io.max, "rbps=50Mi wbps=20Mi riops=1000 wiops=500", of which any may be omitted.
func parseIO(text string) (b attempts.Bandwidth, err error) {
	places := map[string]*int64{"rbps": &b.ReadBytes, "wbps": &b.WriteBytes, "riops": &b.Reads, "wiops": &b.Writes}
	for word := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(word, "=")
		place := places[name]
		switch {
		case place == nil:
			return b, fmt.Errorf("%q: must be rbps=, wbps= (bytes), riops= or wiops= (operations)", word)
		case *place != 0:
			return b, fmt.Errorf("%s: given twice", name)
		}
		if *place, err = perSecond(name, amount); err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

// perSecond reads a number of bytes or of operations.
func perSecond(name, amount string) (n int64, err error) {
	if strings.HasSuffix(name, "bps") {
		if _, err = jobspec.ParseMemory(amount); err != nil {
			return 0, err
		}
		n = sizeOf(amount)
	} else if n, err = strconv.ParseInt(amount, 10, 64); err != nil {
		return 0, fmt.Errorf("%q: must be a number", amount)
	}
	if n <= 0 {
		return 0, fmt.Errorf("%q: must be 1 or more; omit it for no bound", amount)
	}
	return n, nil
}

// bandwidth returns the bound of what a task in a sandbox reads and writes, as the handler takes it.
func (c Config) bandwidth() attempts.Bandwidth {
	b, _ := parseIO(c.Sandbox.IO) // checkSandbox has seen it
	return b
}
