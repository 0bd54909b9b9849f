package charttest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "../compose.yaml"

// loadCompose reads the text as `docker compose config` does: what the specification does not have is an error.
func loadCompose(text string) (*types.Project, error) {
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  "..",
		ConfigFiles: []types.ConfigFile{{Filename: composeFile, Content: []byte(text)}},
		Environment: types.Mapping{"POSTGRES_PASSWORD": "secret", "OPENAI_API_KEY": "key"},
	})
}

func compose(t *testing.T) *types.Project {
	t.Helper()
	project, err := loadCompose(read(t, composeFile))
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestATypoInTheComposeFileIsFound(t *testing.T) {
	text := read(t, composeFile)
	for _, typo := range []struct{ old, new string }{
		{"stop_grace_period:", "stop_grace_periode:"},
		{"condition: service_healthy", "condition: service_health"},
		{"    healthcheck:", "    healthchecks:"},
		{"      postgres: {condition", "      postgresql: {condition"},
		{"read_only: true", "read_only: {}"},
	} {
		broken := strings.Replace(text, typo.old, typo.new, 1)
		if broken == text {
			t.Errorf("there is no %q", typo.old)
		} else if _, err := loadCompose(broken); err == nil {
			t.Errorf("%q is taken for %q", typo.new, typo.old)
		}
	}
}

func TestImagesOfTheComposeFileArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z/-]+:[0-9]+\.[0-9]+[-a-z0-9.]*$`)
	for name, service := range compose(t).Services {
		if !pinned.MatchString(service.Image) {
			t.Errorf("%s: the image %s has no version", name, service.Image)
		}
	}
}

func TestServicesOfEverturnAreConfined(t *testing.T) {
	project := compose(t)
	for _, name := range []string{"migrate", "gateway", "worker"} {
		service := project.Services[name]
		if !service.ReadOnly || !slices.Contains(service.CapDrop, "ALL") || service.MemLimit == 0 || len(service.SecurityOpt) == 0 {
			t.Errorf("%s may do too much", name)
		}
		checkCommand(t, name, service.Command)
		checkVariables(t, name, service.Environment)
	}
}

func TestServicesHaveMoreTimeToStopThanTheConfigurationTakes(t *testing.T) {
	project := compose(t)
	needed := readStopTime(t, project.Configs["everturn"].Content)
	for name, least := range map[string]time.Duration{"gateway": needed.gateway(), "worker": needed.worker()} {
		given := project.Services[name].StopGracePeriod
		if given == nil || time.Duration(*given) < least {
			t.Errorf("%s has %v to stop, and needs %v", name, given, least)
		}
	}
}

// The versions of the server that the tests of Everturn run on.
func TestTemporalIsTheTestedOne(t *testing.T) {
	_, version, _ := strings.Cut(read(t, "../../Makefile"), "TEMPORAL_SERVER_VERSION := v")
	version, _, _ = strings.Cut(version, "\n")
	project := compose(t)
	for _, name := range []string{"temporal", "temporal-schema", "temporal-namespace"} {
		if image := project.Services[name].Image; !strings.Contains(image, ":"+version) {
			t.Errorf("%s has the image %s, and the tests run on %s", name, image, version)
		}
	}
}

func checkVariables(t *testing.T, place string, variables types.MappingWithEquals) {
	t.Helper()
	for name := range variables {
		checkVariable(t, place, name)
	}
}
