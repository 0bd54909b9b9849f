package charttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var units = []string{"gateway", "worker"}

// setting is the value of a key of a unit, of the last line that has it.
func setting(unit, key string) string {
	value := ""
	for line := range strings.Lines(unit) {
		if found, is := strings.CutPrefix(strings.TrimSpace(line), key+"="); is {
			value = found
		}
	}
	return value
}

func TestUnitsRunTheirRoles(t *testing.T) {
	needed := readStopTime(t, "")
	least := map[string]time.Duration{"gateway": needed.gateway(), "worker": needed.worker()}
	for _, role := range units {
		unit := read(t, "../systemd/everturn-"+role+".service")
		command := strings.Fields(setting(unit, "ExecStart"))
		if len(command) != 2 || command[0] != "/usr/local/bin/everturn" || command[1] != role {
			t.Errorf("%s starts %v", role, command)
		}
		checkCommand(t, role, command[1:])
		given, err := time.ParseDuration(setting(unit, "TimeoutStopSec"))
		if err != nil || given < least[role] {
			t.Errorf("%s has %v to stop, and needs %v (%v)", role, given, least[role], err)
		}
	}
}

func TestVariablesOfTheEnvironmentFileAreDocumented(t *testing.T) {
	for line := range strings.Lines(read(t, "../systemd/everturn.env")) {
		if name, _, is := strings.Cut(line, "="); is && !strings.HasPrefix(line, "#") {
			checkVariable(t, "everturn.env", name)
		}
	}
}

// TestSystemdTakesTheUnits asks systemd itself. It must be there in CI.
func TestSystemdTakesTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("install the package systemd")
		}
		t.Skip("there is no systemd-analyze here")
	}
	folder := t.TempDir()
	for _, role := range units {
		name := "everturn-" + role + ".service"
		file := filepath.Join(folder, name)
		// systemd also looks for the program.
		unit := strings.Replace(read(t, "../systemd/"+name), "/usr/local/bin/everturn", "/bin/true", 1)
		if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
			t.Fatal(err)
		}
		// A key that it does not know is only a warning.
		said, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		if err != nil || len(said) > 0 {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		// From 0, confined, to 100.
		said, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s is exposed: %v\n%s", name, err, said)
		}
	}
}
