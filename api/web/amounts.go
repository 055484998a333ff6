package web

import (
	"math/big"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

const (
	// milliCoreMs is a core-hour in milli-cores times milliseconds, the
	// ledger's unit at the default rates.
	milliCoreMs = 1000 * 3600 * 1000
	// maxSum bounds what is read as a sum, in digits: 128 bits have 39.
	maxSum = 48
)

// linear are the policies whose standings are time on cores.
var linear = []string{"SIMPL_DIRECT", "FAIRSHARE", "ROUND_ROBIN", "ALONE", "CE", "SHAPLEY"}

// amounts words the ledger's sums, in core-hours where they are that.
type amounts struct {
	params command.Params
	raw    string // the ledger's own name of its unit
}

// hours reports whether standings are core-hours.
func (a amounts) hours() bool {
	return a.cores() && slices.Contains(linear, a.params.Policy)
}

// cores reports whether a weight is milli-cores times milliseconds.
func (a amounts) cores() bool {
	p := a.params
	return p.RateCPU == 1 && p.RateMem == 0 && p.RateGPU == 0 && p.QuantumMs == 1
}

// Unit names that of a standing.
func (a amounts) Unit() string {
	if a.hours() {
		return "core-hours"
	}
	return a.raw
}

// Standing words a contribution, utility or priority.
func (a amounts) Standing(sum string) string { return words4(a.standing(sum)) }

// standing is Standing as a number, for drawing only.
func (a amounts) standing(sum string) float64 { return a.scale(number(sum)) }

// scale turns a standing in the ledger's unit into one in Unit.
func (a amounts) scale(n float64) float64 {
	if a.hours() {
		n /= milliCoreMs
	}
	return n
}

// used returns a weight, which is core-hours under every policy.
func (a amounts) used(sum string) float64 {
	n := number(sum)
	if a.cores() {
		n /= milliCoreMs
	}
	return n
}

// number reads a sum; 0 if it is none.
func number(sum string) float64 {
	if len(sum) > maxSum {
		return 0
	}
	n, ok := new(big.Float).SetString(sum)
	if !ok {
		return 0
	}
	v, _ := n.Float64()
	return v
}

// words4 words a number with about four digits that say something.
func words4(v float64) string {
	size := max(v, -v)
	switch {
	case size == 0:
		return "0"
	case size < 0.0005:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case size < 1:
		return strconv.FormatFloat(v, 'f', 4, 64)
	case size < 1000:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size < 1e9:
		return count(int64(v))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e+")
	return mantissa + "·10^" + strings.TrimLeft(exponent, "0")
}

// dialable returns a broker's page if its address, which its site registered, is a
// host and a port. That does not say whether it speaks HTTPS: it is asked as this
// page was, so that nobody is led from HTTPS to plain HTTP.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || strings.ContainsAny(host, "/?#@\\ ") {
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	return "//" + net.JoinHostPort(host, port) + "/"
}
