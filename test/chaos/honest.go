package main

import (
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/test/chaos/check"
)

// honest returns the members that keep to the protocol, but guests that have not joined: they are asked, and judged.
func (f *fleet) honest() []*member {
	return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m.hostile || !m.began() })
}

// honesty tells the checker who they are.
func (f *fleet) honesty() check.Honesty {
	if f.hostile == 0 {
		return check.Honesty{}
	}
	return check.Honesty{Hostile: f.members[f.hostile-1].Name}
}

// honestMarks reads the marks of runs at honest sites, of honest sites' jobs, whose ids begin with their owner.
func (r *run) honestMarks() (check.Marks, error) {
	all, err := r.readMarks()
	if err != nil {
		return all, err
	}
	return r.honesty().Marks(all, func(job string) string {
		owner, _, _ := strings.Cut(job, ".")
		return owner
	}), nil
}
