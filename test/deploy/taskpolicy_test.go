package deploy

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// policy is of a NetworkPolicy what those of tasks say.
type policy struct {
	Kind     string
	Metadata struct{ Namespace string }
	Spec     struct {
		PodSelector struct {
			MatchLabels      map[string]string `yaml:"matchLabels"`
			MatchExpressions []struct {
				Key, Operator string
				Values        []string
			} `yaml:"matchExpressions"`
		} `yaml:"podSelector"`
		PolicyTypes []string `yaml:"policyTypes"`
		Ingress     []any
		Egress      []struct{ To []peer }
	}
}

// peer is whom a rule is about; pods that it selects are no addresses.
type peer struct {
	IPBlock struct {
		CIDR   string
		Except []string
	} `yaml:"ipBlock"`
}

const networkLabel = "cloudshare/network"

// taskPolicies are those of the namespace of tasks.
func taskPolicies(t *testing.T) (list []policy) {
	t.Helper()
	documents := yaml.NewDecoder(strings.NewReader(read(t, files, "kubernetes", "site.yaml")))
	for {
		var p policy
		err := documents.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		must(t, err)
		if p.Kind == "NetworkPolicy" && p.Metadata.Namespace == "cloudshare-tasks" {
			list = append(list, p)
		}
	}
}

// selects reports whether pods with such a network are meant.
func (p *policy) selects(network string) bool {
	s := p.Spec.PodSelector
	for _, e := range s.MatchExpressions {
		if e.Key != networkLabel || e.Operator != "In" || !slices.Contains(e.Values, network) {
			return false
		}
	}
	want, labelled := s.MatchLabels[networkLabel]
	return !labelled || want == network
}

// holds reports whether an address is of a peer.
func (p *peer) holds(t *testing.T, to netip.Addr) bool {
	t.Helper()
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		must(t, err)
		return prefix.Contains(to)
	}
	return p.IPBlock.CIDR != "" && in(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, in)
}

// reaches reports what Kubernetes says of pods with such a network: all, if no policy is about what they send, else
// what any of these allows.
func reaches(t *testing.T, list []policy, network, address string) bool {
	t.Helper()
	held := false
	for _, p := range list {
		if !p.selects(network) || !slices.Contains(p.Spec.PolicyTypes, "Egress") {
			continue
		}
		held = true
		for _, rule := range p.Spec.Egress {
			for _, to := range rule.To {
				if to.holds(t, netip.MustParseAddr(address)) {
					return true
				}
			}
		}
	}
	return !held
}

// TestTaskNetworkPolicies: pods of other sites' tasks reach what the operator's guide says, and nobody reaches them.
func TestTaskNetworkPolicies(t *testing.T) {
	list := taskPolicies(t)
	private := []string{
		"10.96.0.1", "10.244.3.7", "172.16.0.1", "172.31.255.255", "192.168.1.10", "127.0.0.1", "169.254.169.254", "100.64.0.1",
		"0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fd00::1", "ff02::1", "64:ff9b::a00:1",
	}
	public := []string{"8.8.8.8", "172.32.0.1", "2001:4860:4860::8888"}
	for network, want := range map[string]struct{ public, private bool }{
		"none": {}, "outbound": {public: true}, "host": {true, true},
	} {
		for addresses, reached := range map[*[]string]bool{&public: want.public, &private: want.private} {
			for _, address := range *addresses {
				if got := reaches(t, list, network, address); got != reached {
					t.Errorf("%s reaches %s: %v", network, address, got)
				}
			}
		}
		closed := slices.ContainsFunc(list, func(p policy) bool {
			return p.selects(network) && slices.Contains(p.Spec.PolicyTypes, "Ingress") && len(p.Spec.Ingress) == 0
		})
		if closed == (network == "host") {
			t.Errorf("others reach pods of %s: %v", network, !closed)
		}
	}
}
