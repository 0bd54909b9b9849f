package charttest

import "testing"

// The URL of the role that owns the tables is for the migration alone. Without one, all have the same URL.
func TestOnlyTheMigrationHasTheURLOfTheOwnerOfTheTables(t *testing.T) {
	const common = "retention: {enabled: true}\ndatabase: {key: url}\n"
	for _, given := range []struct{ values, migration string }{
		{common, "everturn/url"},
		{common + "migration: {database: {key: owner-url}}", "everturn/url"},
		{common + "migration: {database: {existingSecret: schema-owner}}", "schema-owner/EVERTURN_DATABASE"},
		{common + "migration: {database: {existingSecret: schema-owner, key: owner-url}}", "schema-owner/owner-url"},
	} {
		rendered, err := render(t, parseValues(t, given.values))
		if err != nil {
			t.Errorf("%s: %v", given.values, err)
			continue
		}
		loads := workloads(decodeAll(t, rendered))
		if len(loads) != 5 {
			t.Fatalf("%s: %d workloads", given.values, len(loads))
		}
		for _, load := range loads {
			if load.name == "everturn-test" {
				continue // It asks a gateway, and has no database.
			}
			want := "everturn/url"
			if load.name == "everturn-migrate" {
				want = given.migration
			}
			if found := secretOf(load.pod, "EVERTURN_DATABASE"); found != want {
				t.Errorf("%s: %s has its URL from %q instead of %q", given.values, load.name, found, want)
			}
		}
	}
}
