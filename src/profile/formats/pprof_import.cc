// Two passes over the file in memory: everything that samples refer to, which may stand behind them, then the samples.
// protozero reports malformed input by exceptions; they end here.
#include "profile/formats/pprof_import.h"

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/cgroup_path.h"
#include "profile/formats/import_names.h"
#include "profile/formats/pprof.h"

namespace flamewire::profile {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::uint64_t max_file_bytes = std::uint64_t{2} << 30;
// Programs that are not position-independent are linked to low addresses; others never come to lie there.
constexpr std::uint64_t fixed_addresses_end = 0x1000'0000;

constexpr std::uint32_t varint(std::uint32_t tag) { return protozero::tag_and_type(tag, pbf_wire_type::varint); }
constexpr std::uint32_t bytes(std::uint32_t tag) {
    return protozero::tag_and_type(tag, pbf_wire_type::length_delimited);
}

std::string_view view_of(pbf_reader& in) {
    const protozero::data_view view = in.get_view();
    return {view.data(), view.size()};
}
pbf_reader message(std::string_view text) { return pbf_reader(text.data(), text.size()); }

// A repeated number, packed or one by one.
template <class Each>
void each_number(pbf_reader& in, Each each) {
    if (in.wire_type() == pbf_wire_type::varint) {
        each(in.get_uint64());
        return;
    }
    for (const std::uint64_t value : in.get_packed_uint64()) each(value);
}

struct SampleType {
    std::string_view type, unit;
};
struct Mapping {
    std::uint64_t start = 0, limit = 0, offset = 0;
    wire::Id module = 0;
    ImportedModule name;
};
struct Function {
    std::string_view name, file;
};
// Of a place: ids in the recording, innermost first. An address alone has one as what runs and one as a caller.
struct Place {
    std::vector<wire::Id> frames;
    wire::Id caller = 0;
    bool kernel = false;
};
// How a column of values becomes weights of an event; `count`: the column that says how many samples it was.
struct Column {
    wire::Id event = 0;
    std::optional<std::size_t> count;
    std::uint64_t scale = 1;
};

std::uint64_t nanoseconds_of(std::string_view unit) {
    if (unit == pprof_nanoseconds || unit == "ns" || unit == "nanosecond") return 1;
    if (unit == "microseconds" || unit == "us" || unit == "microsecond") return 1'000;
    if (unit == "milliseconds" || unit == "ms" || unit == "millisecond") return 1'000'000;
    if (unit == "seconds" || unit == "s" || unit == "second") return 1'000'000'000;
    return 0;
}

class Reader {
public:
    Reader(ImportJob& job, std::string_view file) : job_(job), file_(file) {}

    Result<bool> run() {
        // Texts first: everything names its texts by their number.
        bool whole = pass([&](pbf_reader& in) {
            if (in.tag_and_type() != bytes(6)) return in.skip();
            strings_.push_back(view_of(in));
        });
        whole = pass([&](pbf_reader& in) { header(in); }) && whole;
        if (types_.empty()) return fail(ErrorCode::invalid, "the pprof profile has no sample type: it is not whole");
        start();
        whole = pass([&](pbf_reader& in) { tables(in); }) && whole;
        Result<bool> done = true;
        std::uint64_t samples = 0;
        constexpr std::uint64_t seldom = 4096;
        const auto each_sample = [&](pbf_reader& in) {
            if (in.tag_and_type() != bytes(2) || !done) return in.skip();
            const std::string_view one = view_of(in);
            done = sample(one);
            if (++samples % seldom == 0) job_.progress(static_cast<std::uint64_t>(one.data() - file_.data()));
        };
        whole = pass(each_sample) && whole;
        if (!done) return done;
        notes(whole);
        return true;
    }

private:
    // Calls each(reader) for every field of the file; false when the file ends in the midst of one or is damaged there.
    template <class Each>
    bool pass(Each each) {
        try {
            pbf_reader in = message(file_);
            while (in.next()) each(in);
            return true;
        } catch (const protozero::exception&) {
            return false;
        }
    }

    [[nodiscard]] std::string_view text(std::int64_t index) const {
        const auto at = static_cast<std::uint64_t>(index);
        return at < strings_.size() ? strings_[at] : std::string_view{};
    }

    void header(pbf_reader& in) {
        switch (in.tag_and_type()) {
            case bytes(1):
                types_.push_back(sample_type(view_of(in)));
                break;
            case varint(9):
                time_ns_ = in.get_int64();
                break;
            case varint(13):
                comments_.push_back(text(in.get_int64()));
                break;
            case bytes(13):
                for (const std::int64_t index : in.get_packed_int64()) comments_.push_back(text(index));
                break;
            case varint(14):
                default_type_ = text(in.get_int64());
                break;
            default:
                in.skip();
        }
    }

    SampleType sample_type(std::string_view one) {
        SampleType type;
        pbf_reader in = message(one);
        while (in.next()) {
            if (in.tag_and_type() == varint(1))
                type.type = text(in.get_int64());
            else if (in.tag_and_type() == varint(2))
                type.unit = text(in.get_int64());
            else
                in.skip();
        }
        return type;
    }

    void start() {
        wire::Recording about;
        about.start_ns = import_moment_ns;
        constexpr std::string_view target = "target: ";
        for (const std::string_view comment : comments_)
            if (comment.starts_with(target)) about.target = comment.substr(target.size());
        builder_ = &job_.begin(std::move(about), std::max<std::int64_t>(time_ns_, 0));
        columns_.resize(types_.size());
        // What the file calls its main value comes first in ours as well.
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (types_[i].type == default_type_ && !default_type_.empty() && !counts_only(i)) add_column(i);
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (columns_[i].event == 0 && !counts_only(i)) add_column(i);
        row_.bucket = import_moment_ns / wire::default_bucket_ns;
    }

    [[nodiscard]] bool is_count(std::size_t i) const { return types_[i].unit == "count"; }
    // Whether the column says nothing but how many samples the next one's value is of.
    [[nodiscard]] bool counts_only(std::size_t i) const {
        if (!is_count(i) || i + 1 == types_.size()) return false;
        const std::string_view type = types_[i].type, next = types_[i + 1].type;
        if (type == "samples" || type == "sample") return !is_count(i + 1) || types_.size() == 2;
        return type.ends_with("_samples") && type.substr(0, type.size() - 8) == next;
    }

    void add_column(std::size_t i) {
        Column& column = columns_[i];
        const std::string_view type = types_[i].type.empty() ? "value" : types_[i].type;
        column.scale = nanoseconds_of(types_[i].unit);
        column.event = builder_->event(type, column.scale != 0        ? "ns"
                                             : types_[i].unit.empty() ? type
                                             : is_count(i)            ? type
                                                                      : types_[i].unit);
        if (column.scale == 0) column.scale = 1;
        if (is_count(i) && !(i > 0 && counts_only(i - 1)))
            column.count = i;
        else if (i > 0 && is_count(i - 1))
            column.count = i - 1;
    }

    void tables(pbf_reader& in) {
        switch (in.tag_and_type()) {
            case bytes(3):
                mapping(view_of(in));
                break;
            case bytes(4):
                location_messages_.push_back(view_of(in));
                break;
            case bytes(5):
                function(view_of(in));
                break;
            default:
                in.skip();
        }
    }

    void mapping(std::string_view one) {
        std::uint64_t id = 0;
        std::string_view file, build_id;
        Mapping mapping;
        pbf_reader in = message(one);
        while (in.next()) switch (in.tag_and_type()) {
                case varint(1):
                    id = in.get_uint64();
                    break;
                case varint(2):
                    mapping.start = in.get_uint64();
                    break;
                case varint(3):
                    mapping.limit = in.get_uint64();
                    break;
                case varint(4):
                    mapping.offset = in.get_uint64();
                    break;
                case varint(5):
                    file = text(in.get_int64());
                    break;
                case varint(6):
                    build_id = text(in.get_int64());
                    break;
                default:
                    in.skip();
            }
        mapping.name = module_of_name(file);
        if (!mapping.name.path.empty() || !build_id.empty())
            mapping.module = builder_->module(mapping.name.kind, mapping.name.path, build_id_of(build_id));
        mappings_[id] = mapping;
    }

    void function(std::string_view one) {
        std::uint64_t id = 0;
        std::string_view system_name;
        Function function;
        pbf_reader in = message(one);
        while (in.next()) switch (in.tag_and_type()) {
                case varint(1):
                    id = in.get_uint64();
                    break;
                case varint(2):
                    function.name = text(in.get_int64());
                    break;
                case varint(3):
                    system_name = text(in.get_int64());
                    break;
                case varint(4):
                    function.file = text(in.get_int64());
                    break;
                default:
                    in.skip();
            }
        if (function.name.empty()) function.name = system_name;
        functions_[id] = function;
    }

    struct Line {
        std::uint64_t function = 0, line = 0;
    };
    Line line(std::string_view one) {
        Line line;
        pbf_reader in = message(one);
        while (in.next()) {
            if (in.tag_and_type() == varint(1))
                line.function = in.get_uint64();
            else if (in.tag_and_type() == varint(2))
                line.line = in.get_uint64();
            else
                in.skip();
        }
        return line;
    }

    void place(std::string_view one) {
        std::uint64_t id = 0, mapping_id = 0, address = 0;
        std::vector<Line> lines;
        pbf_reader in = message(one);
        while (in.next()) switch (in.tag_and_type()) {
                case varint(1):
                    id = in.get_uint64();
                    break;
                case varint(2):
                    mapping_id = in.get_uint64();
                    break;
                case varint(3):
                    address = in.get_uint64();
                    break;
                case bytes(4):
                    lines.push_back(line(view_of(in)));
                    break;
                default:
                    in.skip();
            }
        const auto known = mappings_.find(mapping_id);
        const Mapping mapping = known == mappings_.end() ? Mapping{} : known->second;
        Place& place = places_[id];
        place.frames.clear();
        place.kernel = mapping.name.kind == wire::ModuleKind::kernel;
        for (std::size_t i = 0; i < lines.size(); ++i) named(place, mapping, lines[i], i + 1 < lines.size());
        if (place.frames.empty()) addressed(place, mapping, address);
    }

    void named(Place& place, const Mapping& mapping, const Line& line, bool inlined) {
        const auto function = functions_.find(line.function);
        if (function == functions_.end() || function->second.name.empty()) return;
        std::string with_module;
        std::string_view name = function->second.name;
        if (!mapping.name.kernel_module.empty())
            name = with_module = fmt::format("{} [{}]", name, mapping.name.kernel_module);
        place.frames.push_back(builder_->location(
            {.function = name,
             .file = function->second.file,
             .line = static_cast<std::uint32_t>(line.line <= std::numeric_limits<std::uint32_t>::max() ? line.line : 0),
             .module = mapping.module,
             .flags = inlined ? wire::location_flag::inlined : 0}));
    }

    // ELF virtual addresses, as far as the file tells: where a program's segments lie in its file it does not say.
    void addressed(Place& place, const Mapping& mapping, std::uint64_t address) {
        if (mapping.module == 0 && address == 0) {
            place.frames.push_back(builder_->location({.function = "[unknown]"}));
            return;
        }
        const bool adjusted = mapping.start == 0 && mapping.offset == 0;
        if (place.kernel)
            address -= address >= mapping.start ? mapping.start : 0;
        else if (!adjusted && mapping.start >= fixed_addresses_end && address >= mapping.start)
            address = address - mapping.start + mapping.offset;
        place.frames.push_back(builder_->location(mapping.module, address, 0));
        place.caller = builder_->location(mapping.module, address + 1, wire::location_flag::return_address);
    }

    struct Labels {
        std::uint32_t pid = 0, tid = 0;
        std::string_view thread, process, container, pod, cgroup;
        bool has_tid = false;
    };

    void label(std::string_view one, Labels& labels) {
        std::string_view key, string;
        std::int64_t number = 0;
        pbf_reader in = message(one);
        while (in.next()) switch (in.tag_and_type()) {
                case varint(1):
                    key = text(in.get_int64());
                    break;
                case varint(2):
                    string = text(in.get_int64());
                    break;
                case varint(3):
                    number = in.get_int64();
                    break;
                default:
                    in.skip();
            }
        const auto as_number = [&] {
            std::uint64_t value = static_cast<std::uint64_t>(number);
            if (!string.empty()) {
                value = 0;
                for (const char c : string) {
                    if (c < '0' || c > '9' || value > std::numeric_limits<std::uint32_t>::max())
                        return std::uint32_t{0};
                    value = value * 10 + static_cast<std::uint64_t>(c - '0');
                }
            }
            return value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(value) : 0;
        };
        if (key == "pid" || key == "process_id" || key == "process id") {
            labels.pid = as_number();
        } else if (key == "tid" || key == "thread_id" || key == "thread id") {
            labels.tid = as_number();
            labels.has_tid = labels.tid != 0;
        } else if (key == "thread" || key == "thread_name" || key == "thread name" || key == "comm" ||
                   key == "thread_comm") {
            labels.thread = string;
        } else if (key == "process" || key == "process_name" || key == "process name" || key == "process_comm") {
            labels.process = string;
        } else if (key == "container_id") {
            labels.container = string;
        } else if (key == "cgroup_path") {
            labels.cgroup = string;
        } else if (key == "pod_uid") {
            labels.pod = string;
        } else if (other_labels_.size() < 8) {
            other_labels_.insert(key);
        }
    }

    wire::Id thread(Labels labels) {
        // Threads are told apart by their number; those that have a name alone get one.
        if (!labels.has_tid && !labels.thread.empty())
            labels.tid =
                invented_.try_emplace({labels.pid, labels.thread}, narrow32(invented_.size() + 1)).first->second;
        // The pod of a process is in its path; elsewhere there is no place for it.
        if (!labels.pod.empty() && parse_cgroup_path(labels.cgroup).pod_uid != labels.pod && other_labels_.size() < 8)
            other_labels_.insert("pod_uid");
        const bool told = !labels.process.empty() || !labels.container.empty() || !labels.cgroup.empty();
        if (told && named_processes_.insert(labels.pid).second) {
            wire::Process process;
            process.pid = labels.pid;
            process.comm = builder_->string(labels.process);
            process.container_id = builder_->string(labels.container);
            process.cgroup = builder_->string(labels.cgroup);
            (void)builder_->process(process);
        }
        return builder_->thread(labels.pid, labels.tid, labels.thread);
    }

    const Place& place_of(std::uint64_t id) {
        if (!location_messages_.empty()) {
            for (const std::string_view one : std::exchange(location_messages_, {})) place(one);
        }
        static const Place none;
        const auto found = places_.find(id);
        return found == places_.end() ? none : found->second;
    }

    wire::Id stack(const std::vector<std::uint64_t>& ids) {
        wire::Id stack = 0;
        for (std::size_t from = ids.size(); from-- > 0;) {
            const Place& place = place_of(ids[from]);
            const bool called_kernel = from > 0 && !place.kernel && place_of(ids[from - 1]).kernel;
            if (place.caller != 0 && from > 0 && !called_kernel)
                stack = builder_->stack(stack, place.caller);
            else
                for (auto frame = place.frames.rbegin(); frame != place.frames.rend(); ++frame)
                    stack = builder_->stack(stack, *frame);
        }
        return stack;
    }

    Result<bool> sample(std::string_view one) {
        ids_.clear();
        values_.clear();
        Labels labels;
        pbf_reader in = message(one);
        while (in.next()) switch (in.tag_and_type()) {
                case varint(1):
                case bytes(1):
                    each_number(in, [&](std::uint64_t id) { ids_.push_back(id); });
                    break;
                case varint(2):
                case bytes(2):
                    each_number(in, [&](std::uint64_t value) { values_.push_back(value); });
                    break;
                case bytes(3):
                    label(view_of(in), labels);
                    break;
                default:
                    in.skip();
            }
        row_.stack = stack(ids_);
        row_.thread = thread(labels);
        for (std::size_t i = 0; i < std::min(values_.size(), columns_.size()); ++i) {
            const Column& column = columns_[i];
            if (column.event == 0) continue;
            const std::uint64_t count = column.count && *column.count != i ? values_[*column.count] : 0;
            if (values_[i] == 0 && count == 0) continue;
            if (static_cast<std::int64_t>(values_[i]) < 0) {
                ++negative_;
                continue;
            }
            row_.event = column.event;
            row_.weight = values_[i] > std::numeric_limits<std::int64_t>::max() / column.scale
                              ? std::numeric_limits<std::int64_t>::max()
                              : values_[i] * column.scale;
            const std::uint64_t samples = !column.count ? 1 : *column.count == i ? values_[i] : count;
            row_.count = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(samples, 1, std::numeric_limits<std::uint32_t>::max()));
            TRY(builder_->add(row_));
        }
        return true;
    }

    void notes(bool whole) {
        builder_->note("import-no-times", "A pprof profile has sums without times: it is shown as one moment.");
        if (!whole)
            builder_->note("import-truncated", "The file ends too early or is damaged: what stands before is shown.");
        if (!other_labels_.empty()) {
            std::string list;
            for (const std::string_view key : other_labels_)
                list += fmt::format("{}{:.40}", list.empty() ? "" : ", ", key);
            builder_->note("import-labels", fmt::format("Labels of samples that are not shown: {}.", list));
        }
        if (negative_ != 0)
            builder_->note(
                "import-negative",
                fmt::format("{} values are negative (a difference of profiles) and were left out.", negative_));
    }

    ImportJob& job_;
    std::string_view file_;
    RecordingBuilder* builder_ = nullptr;
    std::vector<std::string_view> strings_, comments_, location_messages_;
    std::vector<SampleType> types_;
    std::vector<Column> columns_;
    std::string_view default_type_;
    std::int64_t time_ns_ = 0;
    std::unordered_map<std::uint64_t, Mapping> mappings_;
    std::unordered_map<std::uint64_t, Function> functions_;
    std::unordered_map<std::uint64_t, Place> places_;
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> invented_;
    std::set<std::uint32_t> named_processes_;
    std::set<std::string_view> other_labels_;
    std::vector<std::uint64_t> ids_, values_;
    wire::Row row_;
    std::uint64_t negative_ = 0;
};

bool is_sample_type(std::string_view one) {
    pbf_reader in = message(one);
    while (in.next()) {
        if (in.tag_and_type() != varint(1) && in.tag_and_type() != varint(2)) return false;
        in.skip();
    }
    return true;
}

}  // namespace

bool recognises_pprof(std::string_view beginning) {
    bool has_type = false;
    try {
        pbf_reader in = message(beginning);
        while (in.next()) {
            const std::uint32_t tag = in.tag();
            const bool numbers = (tag >= 7 && tag <= 10) || (tag >= 12 && tag <= 15);
            const bool packed = tag == 13;
            const bool right = in.wire_type() == (numbers ? pbf_wire_type::varint : pbf_wire_type::length_delimited) ||
                               (packed && in.wire_type() == pbf_wire_type::length_delimited);
            if (tag > 15 || !right) return false;
            if (tag == 1) {
                if (!is_sample_type(view_of(in))) return false;
                has_type = true;
            } else {
                in.skip();
            }
        }
        return has_type;
    } catch (const protozero::end_of_buffer_exception&) {
        // The beginning may be cut in the midst of a field, a file too.
        return has_type;
    } catch (const protozero::exception&) {
        return false;
    }
}

Result<bool> import_pprof(ImportJob& job) {
    if (job.source().size() > max_file_bytes)
        return fail(ErrorCode::too_large, "the pprof profile has more than 2 GiB; take a shorter one");
    std::string file(job.source().size(), '\0');
    file.resize(TRY(job.source().read_at(0, file)));
    try {
        return Reader(job, file).run();
    } catch (const protozero::exception&) {
        return fail(ErrorCode::invalid, "the pprof profile is damaged");
    }
}

}  // namespace flamewire::profile
