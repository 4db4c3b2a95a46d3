// Existing servers depend on the names of some fields (platform, capabilities). The other fields are Flamewire's own.
#include "agent/hello.h"

namespace flamewire::agent {

wire::Hello make_hello(std::string_view agent_id, const Machine& machine, const Capabilities& capabilities,
                       std::string_view state) {
    wire::Hello hello;
    hello.agent_version = FLAMEWIRE_VERSION;
    hello.agent_id = agent_id;
    hello.platform.arch = machine.arch;
    hello.platform.endian = machine.little_endian ? "little" : "big";
    hello.platform.kernel = machine.kernel_release;
    hello.platform.hostname = machine.host;
    hello.platform.page_size = machine.page_size;
    hello.platform.cpus = machine.cpus;
    hello.platform.boot_id = machine.boot_id;
    hello.platform.perf_event_paranoid = capabilities.paranoid;
    hello.platform.pmus = capabilities.pmus;
    hello.capabilities.record_events = capabilities.sampling_events;
    hello.capabilities.unwind_modes = capabilities.unwind_modes;
    hello.capabilities.callgraph_method = capabilities.unwind_modes.empty() ? "" : capabilities.unwind_modes.front();
    hello.state = state;
    return hello;
}

void put_platform(JsonObject& object, const Machine& machine, const Capabilities& capabilities) {
    object.object("platform")
        .text("arch", machine.arch)
        .text("endian", machine.little_endian ? "little" : "big")
        .text("kernel", machine.kernel_release)
        .text("hostname", machine.host)
        .text("perf_version", "none: perf_event_open is called directly")
        .signed_number("perf_event_paranoid", capabilities.paranoid)
        .end_object();
}

void put_capabilities(JsonObject& object, const Capabilities& capabilities) {
    object.texts("record_events", capabilities.sampling_events)
        .texts("stat_only_events", {})
        .text("callgraph_method", capabilities.unwind_modes.empty() ? "" : capabilities.unwind_modes.front())
        .flag("pipe_mode", true)
        .texts("unwind_modes", capabilities.unwind_modes)
        .flag("perf_events", capabilities.perf_events)
        .flag("kernel_samples", capabilities.kernel_samples)
        .number("max_frequency", capabilities.max_sample_rate_hz)
        .number("max_stack", capabilities.max_stack)
        .texts("pmus", capabilities.pmus);
    object.array("findings");
    for (const Diagnostic& diagnostic : capabilities.diagnostics)
        object.element()
            .text("code", diagnostic.code)
            .text("name", diagnostic.name)
            .flag("works", diagnostic.works)
            .text("text", diagnostic.text)
            .text("remedy", diagnostic.remedy)
            .end_object();
    object.end_array();
}

}  // namespace flamewire::agent
