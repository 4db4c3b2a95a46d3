#include "agent/recording/recording_encode.h"

#include "agent/recording/recording_fields.h"
#include "base/varint.h"

namespace flamewire::agent {
namespace {

struct Writer {
    static constexpr bool reads = false;
    static constexpr bool at_end() { return false; }
    std::string out;

    void number(std::uint64_t value) { append_varint(out, value); }
    void text(const std::string& text) {
        append_varint(out, text.size());
        out += text;
    }
};

// Fields takes non-const references, but a Writer only reads them.
template <class... T>
std::string encode(const T&... values) {
    Writer writer;
    Fields<Writer> fields(writer);
    fields(const_cast<T&>(values)...);
    return std::move(writer.out);
}

}  // namespace

std::string encode_plan(const RecordingPlan& plan) { return encode(plan); }
std::string encode_capabilities(const Capabilities& capabilities) { return encode(capabilities); }
std::string encode_machine(const Machine& machine) { return encode(machine); }

std::string encode_command(const RecorderCommand& command) {
    CommandKind kind = CommandKind::pause;
    if (const auto* change = std::get_if<std::shared_ptr<const Change>>(&command))
        return encode(CommandKind::change, **change);
    if (const auto* added = std::get_if<AddProcesses>(&command)) return encode(CommandKind::add_processes, *added);
    if (const auto* added = std::get_if<AddBreakpoints>(&command)) return encode(CommandKind::add_breakpoints, *added);
    if (const auto* counted = std::get_if<SetCountBy>(&command)) return encode(CommandKind::count_by, *counted);
    if (std::holds_alternative<OpenModule>(command)) return {};
    if (std::holds_alternative<Resume>(command)) kind = CommandKind::resume;
    if (std::holds_alternative<ResolveKernel>(command)) kind = CommandKind::resolve_kernel;
    if (std::holds_alternative<BeginDelay>(command)) kind = CommandKind::begin_delay;
    return encode(kind);
}

}  // namespace flamewire::agent
