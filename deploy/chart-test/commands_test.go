package charttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commandLine is the source of the command line: its subcommands are variants, and its options are fields.
func commandLine(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../worker/src/cli/*.rs")
	if err != nil || len(files) == 0 {
		t.Fatal("where is the command line?", err)
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString(read(t, file))
	}
	return text.String()
}

// checkCommand fails the test when everturn has no such subcommand or option.
func checkCommand(t *testing.T, place string, arguments []string) {
	t.Helper()
	source := commandLine(t)
	for at, argument := range arguments {
		if at == 0 {
			variant := "    " + strings.ToUpper(argument[:1]) + argument[1:]
			if !strings.Contains(source, variant+",") && !strings.Contains(source, variant+"(") {
				t.Errorf("%s: everturn has no command %s", place, argument)
			}
		} else if name, isOption := strings.CutPrefix(argument, "--"); isOption {
			if !strings.Contains(source, "pub "+strings.ReplaceAll(name, "-", "_")+":") {
				t.Errorf("%s: everturn has no option %s", place, argument)
			}
		}
	}
}

// A stopTime is what everturn.toml gives a process to stop, as Everturn's defaults and its text say.
type stopTime struct {
	Gateway struct {
		Drain         duration `toml:"drain"`
		ShutdownGrace duration `toml:"shutdown_grace"`
	} `toml:"gateway"`
	Worker struct {
		GracefulShutdown duration `toml:"graceful_shutdown"`
	} `toml:"worker"`
}

type duration struct{ time.Duration }

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

func readStopTime(t *testing.T, config string) stopTime {
	t.Helper()
	var found stopTime
	// The defaults stand in the example of a configuration.
	for _, text := range []string{read(t, "../../everturn.example.toml"), config} {
		if _, err := toml.Decode(text, &found); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// gateway is the time that a gateway takes to stop, with 5 s to close what is open.
func (s stopTime) gateway() time.Duration {
	return s.Gateway.Drain.Duration + s.Gateway.ShutdownGrace.Duration + 5*time.Second
}

// worker is the time that a worker takes to stop, with 10 s to report what was stopped and to give its lease back.
func (s stopTime) worker() time.Duration {
	return s.Worker.GracefulShutdown.Duration + 10*time.Second
}

func TestCommandsOfTheChartExist(t *testing.T) {
	for name := range cases {
		for _, load := range workloads(decodeAll(t, renderCase(t, name))) {
			checkCommand(t, name+": "+load.name, load.pod.Spec.Containers[0].Args)
		}
	}
}
