package config

import (
	"strings"
	"testing"
	"time"
)

// TestDataIsChecked: each key of files by its name.
func TestDataIsChecked(t *testing.T) {
	for key, change := range map[string]func(*DataConfig){
		"data.own":          func(d *DataConfig) { d.Own = "much" },
		"data.cache":        func(d *DataConfig) { d.Cache = "-1" },
		"data.outgoing":     func(d *DataConfig) { d.Outgoing = "2000Ti" },
		"data.lend_max":     func(d *DataConfig) { d.LendMax = "x" },
		"data.uplink":       func(d *DataConfig) { d.Uplink = "" },
		"data.deliver_wait": func(d *DataConfig) { d.DeliverWait = time.Second },
		"data.hold":         func(d *DataConfig) { d.Hold = 0 },
		"data.keep_results": func(d *DataConfig) { d.KeepResults = -time.Hour },
		"data.keep_unnamed": func(d *DataConfig) { d.KeepUnnamed = time.Second },
	} {
		c := Default()
		c.Site = "site-1"
		change(&c.Data)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+" ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestDataOfABroker: the defaults take files; without room for a site's own none travel; nobody is lent more than the
// cache can hold.
func TestDataOfABroker(t *testing.T) {
	c := Default()
	c.Site, c.DataDir = "site-1", "x"
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	o, some := c.ForFiles()
	if !some || o.Dir != "x/data" || o.Limits.Own.Max != 100<<30 || o.Limits.Outgoing.Keep != 7*24*time.Hour {
		t.Errorf("%t, %+v", some, o)
	}
	if terms := c.DataTerms(); terms.LendMax != 16<<30 || c.Uplink() != 0 {
		t.Errorf("%+v, uplink %d", terms, c.Uplink())
	}
	c.Data.Own, c.Data.Cache, c.Data.Uplink = "0", "1Gi", "10Mi"
	if _, some := c.ForFiles(); some || c.DataTerms().LendMax != 1<<30 || c.Uplink() != 10<<20 {
		t.Errorf("%t, %+v, uplink %d", some, c.DataTerms(), c.Uplink())
	}
}
