package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// start starts the federations, with those who submit; which one is started first changes by spell.
func (u *users) start(ctx context.Context, spell int) (stop func() error, err error) {
	issuer, err := startIssuer()
	if err != nil {
		return nil, err
	}
	var feds [2]*testbed.Federation // ours, the build's beside
	stop = func() (err error) {
		for _, b := range u.inTurns() {
			closeLanes(b.lanes)
		}
		for _, fed := range feds {
			if fed != nil {
				err = errors.Join(err, fed.Stop())
			}
		}
		issuer.close()
		return err
	}
	for i := range feds {
		which := (i + spell) % len(feds)
		if feds[which], err = u.startWhich(ctx, which, spell, issuer); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	if err := u.addBearers(ctx, feds[0], feds[1], issuer); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// startWhich starts our federation, 0, or the build's beside, 1, nil if there is none.
func (u *users) startWhich(ctx context.Context, which, spell int, i *issuer) (*testbed.Federation, error) {
	env := u.env
	switch {
	case which == 0:
		return u.startBusy(ctx, env, fmt.Sprintf("users-%d", spell), i.environ()...)
	case env.beside == "":
		return nil, nil
	}
	env.binary = env.beside
	return u.startBusy(ctx, env, fmt.Sprintf("beside-%d", spell))
}

// addBearers adds those who submit to a federation; other is the build's beside, nil if there is none.
func (u *users) addBearers(ctx context.Context, fed, other *testbed.Federation, i *issuer) error {
	made, err := byUsers(ctx, fed, u.load.clients)
	if err != nil {
		return err
	}
	provided, err := i.byUsers(u.load.clients)
	if err != nil {
		return err
	}
	held := u.load.holds()
	u.bearers = []*bearer{
		{name: "the operator's token", fed: fed, authorize: bySite(fed)},
		{name: "users' tokens", fed: fed, authorize: made, held: held},
		{name: "a provider's tokens", fed: fed, authorize: provided, held: held},
	}
	for _, b := range u.bearers {
		switch {
		case other != nil:
			b.beside = &bearer{name: "the build beside", fed: other, authorize: bySite(other)}
		case b != u.bearers[0]:
			b.beside = u.bearers[0]
		}
	}
	return nil
}

// startBusy starts a federation whose third site is busy.
func (u *users) startBusy(
	ctx context.Context, env environment, name string, environ ...string,
) (*testbed.Federation, error) {
	name = fmt.Sprintf("%s-%d-%d-%d", name, u.load.clients, u.load.jobs, u.load.cores)
	fed, err := startSites(ctx, env, name, siteCount, u.load.cores, environ...)
	if err != nil {
		return nil, err
	}
	_, err = occupyBy(ctx, fed.Sites[2], testbed.Spec{
		Command: []string{"sleep", "900"}, Count: 1, Resources: &testbed.Resources{CPU: u.load.cores},
	})
	if err != nil {
		return nil, errors.Join(err, fed.Stop())
	}
	return fed, nil
}
