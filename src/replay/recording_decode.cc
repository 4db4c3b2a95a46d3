#include "replay/recording_decode.h"

#include "agent/recording/recording_fields.h"
#include "base/byte_reader.h"
#include "base/varint.h"

namespace flamewire::replay {

using namespace agent;

namespace {

class Reader {
public:
    static constexpr bool reads = true;
    explicit Reader(std::string_view text) : in_(as_bytes_view(text)) {}

    void number(std::uint64_t& value) { value = read_varint(in_); }
    std::uint64_t count() {
        const std::uint64_t elements = read_varint(in_);
        if (elements <= in_.remaining()) return elements;
        in_.fail();
        return 0;
    }
    void text(std::string& text) { text = as_text(in_.bytes(static_cast<std::size_t>(count()))); }
    [[nodiscard]] bool at_end() const { return in_.ok() && in_.remaining() == 0; }

private:
    ByteReader in_;
};

template <class T>
Result<T> value_of(std::string_view text, std::string_view what) {
    T value;
    Reader reader(text);
    Fields<Reader> fields(reader);
    fields(value);
    if (!reader.at_end()) return fail(ErrorCode::invalid, "damaged capture: " + std::string(what));
    return value;
}

}  // namespace

Result<RecordingPlan> decode_plan(std::string_view text) {
    auto plan = value_of<RecordingPlan>(text, "plan");
    // Users of an EventSpec rely on its first part.
    const auto has_parts = [](const EventSpec& spec) { return !spec.parts.empty(); };
    if (plan && !std::ranges::all_of(plan->wanted.events, has_parts))
        return fail(ErrorCode::invalid, "damaged capture: an event without parts");
    return plan;
}

Result<Capabilities> decode_capabilities(std::string_view text) { return value_of<Capabilities>(text, "capabilities"); }

Result<Machine> decode_machine(std::string_view text) { return value_of<Machine>(text, "machine"); }

Result<RecorderCommand> decode_command(std::string_view text) {
    constexpr std::string_view what = "command";
    if (text.empty()) return fail(ErrorCode::invalid, "damaged capture: empty command");
    const std::string_view rest = text.substr(1);
    switch (static_cast<CommandKind>(text.front())) {
        case CommandKind::pause: return Pause{};
        case CommandKind::resume: return Resume{};
        case CommandKind::change: return std::make_shared<const Change>(TRY(value_of<Change>(rest, what)));
        case CommandKind::count_by: return RecorderCommand(TRY(value_of<SetCountBy>(rest, what)));
        case CommandKind::resolve_kernel: return ResolveKernel{};
        case CommandKind::begin_delay: return BeginDelay{};
        case CommandKind::add_processes: return RecorderCommand(TRY(value_of<AddProcesses>(rest, what)));
        case CommandKind::add_breakpoints: return RecorderCommand(TRY(value_of<AddBreakpoints>(rest, what)));
    }
    return fail(ErrorCode::invalid, "damaged capture: unknown command");
}

}  // namespace flamewire::replay
