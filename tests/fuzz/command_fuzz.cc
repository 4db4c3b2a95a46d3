// Arbitrary bytes as a command of the server: refused, or answered with one JSON object that contains the command's id.
#include <cstdint>
#include <cstdlib>

#include "../unit/agent/fake_control.h"
#include "wire/control.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    using namespace flamewire::agent;
    const auto command = wire::parse_command({reinterpret_cast<const char*>(data), size});
    if (!command) return 0;
    FakeControl control;
    control.check.exists = true;
    control.processes = {{1, 1, "root", command->name, command->id, "", 12.5}};
    const Machine machine;
    for (const State state : {State::idle, State::profiling}) {
        control.report.state = state;
        if (state != State::idle) control.report.running = control.running_with(control.report.settings, {1});
        const auto reply = wire::parse_object(handle_command(*command, machine, control));
        if (!reply || wire::text_member(*reply, "id") != command->id) std::abort();
    }
    return 0;
}
