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

void put_platform(JsonWriter& json, const Machine& machine, const Capabilities& capabilities) {
    json.object("platform")
        .member("arch", machine.arch)
        .member("endian", machine.little_endian ? "little" : "big")
        .member("kernel", machine.kernel_release)
        .member("hostname", machine.host)
        .member("perf_version", "none: perf_event_open is called directly")
        .member("perf_event_paranoid", capabilities.paranoid)
        .end_object();
}

void put_capabilities(JsonWriter& json, const Capabilities& capabilities) {
    json.texts("record_events", capabilities.sampling_events)
        .array("stat_only_events")
        .end_array()
        .member("callgraph_method", capabilities.unwind_modes.empty() ? "" : capabilities.unwind_modes.front())
        .member("pipe_mode", true)
        .texts("unwind_modes", capabilities.unwind_modes)
        .member("perf_events", capabilities.perf_events)
        .member("kernel_samples", capabilities.kernel_samples)
        .member("max_frequency", capabilities.max_sample_rate_hz)
        .member("max_stack", capabilities.max_stack)
        .texts("pmus", capabilities.pmus);
    json.array("findings");
    for (const Diagnostic& diagnostic : capabilities.diagnostics)
        json.object()
            .member("code", diagnostic.code)
            .member("name", diagnostic.name)
            .member("works", diagnostic.works)
            .member("text", diagnostic.text)
            .member("remedy", diagnostic.remedy)
            .end_object();
    json.end_array();
}

}  // namespace flamewire::agent
