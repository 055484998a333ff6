package cli

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

const (
	// milliCoreMs is a core-hour in milli-cores times milliseconds, the
	// ledger's unit at the default rates.
	milliCoreMs = 1000 * 3600 * 1000
	// maxSum bounds what is read as a sum, in digits: 128 bits have 39.
	maxSum = 48
	// maxDecimals of a core-hour: the sixth is 3.6 ms of a core.
	maxDecimals = 6
)

// linear are the policies whose standings are time on cores. The others', and
// those that this program does not know, are shown as they come.
var linear = []string{"SIMPL_DIRECT", "FAIRSHARE", "ROUND_ROBIN", "ALONE", "CE", "SHAPLEY"}

// Amounts words the ledger's exact sums for people, in core-hours where they
// are that: cores alone are charged for, by the milli-core and millisecond.
// It goes by the rates of now; sums from before a change of rates are in the
// old ones.
type Amounts struct{ policy wire.Policy }

// NewAmounts returns the words for sums under a policy.
func NewAmounts(policy wire.Policy) Amounts { return Amounts{policy} }

// LoadAmounts asks for the policy that a table needs to know; the other forms show raw sums.
func LoadAmounts(ctx context.Context, a *App, c *client.Client) (Amounts, error) {
	if a.Format != "table" {
		return Amounts{}, nil
	}
	policy, err := c.Policy(ctx)
	return Amounts{policy}, err
}

// cores reports whether a weight is milli-cores times milliseconds.
func (in Amounts) cores() bool {
	p := in.policy
	return p.RateCPU == 1 && p.RateMem == 0 && p.RateGPU == 0 && p.QuantumMs == 1
}

// Unit names that of a site's standing; raw is the ledger's own name for it.
func (in Amounts) Unit(raw string) string {
	if in.cores() && slices.Contains(linear, in.policy.Policy) {
		return "core-hours"
	}
	return Cell(raw)
}

// Standing words a contribution, utility or priority.
func (in Amounts) Standing(sum string) string {
	if slices.Contains(linear, in.policy.Policy) {
		return in.Used(sum)
	}
	return sum
}

// Used words a weight: it does not depend on the policy.
func (in Amounts) Used(sum string) string {
	if !in.cores() || len(sum) > maxSum {
		return sum
	}
	n, ok := new(big.Int).SetString(sum, 10)
	if !ok {
		return sum
	}
	return coreHours(n) + " core-h"
}

// coreHours has two decimals, and more if there were nothing to see with two.
func coreHours(n *big.Int) string {
	hours := new(big.Rat).SetFrac(n, big.NewInt(milliCoreMs))
	decimals := 2
	for limit := big.NewRat(1, 10); decimals < maxDecimals && new(big.Rat).Abs(hours).Cmp(limit) < 0; decimals++ {
		limit.Mul(limit, big.NewRat(1, 10))
	}
	text := hours.FloatString(decimals)
	if strings.Trim(text, "-0.") == "" {
		return "0"
	}
	return text
}
