package jobs

import (
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node/access"
)

// checkUser refuses what can be no user of this site, the only one whose users are known here.
func (j *Jobs) checkUser(user, site string) error {
	switch {
	case !access.ValidUser(user):
		return problem.BadQuery("user", user, "is no user's name: "+access.UserForm)
	case site != "" && site != j.broker.Site():
		return problem.BadQuery("site", site, "given together with user: another site's users are known to its own broker alone, ask there")
	}
	return nil
}
