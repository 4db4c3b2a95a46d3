// The code that one process generated at run time, as the process itself describes it. Finds its jitdump or perf map,
// follows it, and resolves addresses to functions. Reads files, so use it on a thread that may block on a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "agent/process/jit_file.h"
#include "agent/process/jitdump.h"
#include "agent/process/perf_map.h"
#include "agent/process/process_table.h"
#include "base/range_map.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct JitProcess {
    ModuleHandle module = 0;  // the module for its code
    std::uint32_t pid = 0, ns_pid = 0;
    std::string program;              // comm, for people
    std::string jitdump;              // path as the process sees it; empty: none was mapped
    std::uint64_t start_time_ns = 0;  // CLOCK_BOOTTIME
    std::string exe;                  // path of its executable; empty: unknown
};

// A sampled address in such code that has no name yet.
struct JitRequest {
    ModuleHandle module = 0;
    std::uint64_t address = 0, time_ns = 0;  // time of the first sample
};

// From `from_ns` (0: always) until `until_ns`, [start, end) was this function.
struct JitAnswer {
    ModuleHandle module = 0;
    std::uint64_t start = 0, end = 0;
    std::uint64_t from_ns = 0, until_ns = std::numeric_limits<std::uint64_t>::max();
    std::shared_ptr<const JitBody> body;
};

// How long after code has run its name may still be written, because writers buffer. A later name belongs to code that
// runs then.
inline constexpr std::uint64_t jit_writer_delay_ns = 10'000'000'000;
// Whether an entry that appeared at `from_ns` (0: always) names a sample for which no other entry is known.
bool may_name(std::uint64_t sampled_ns, std::uint64_t from_ns);

// Limits for one poll().
struct JitBudget {
    std::size_t bytes = 0;          // of files
    std::size_t answer_bytes = 0;   // of bodies in this process's answers; once used up, bodies contain only names
    std::uint64_t deadline_ns = 0;  // in CPU time of the thread
    std::size_t ranges = 0;         // that all processes together may hold
    bool last = false;              // there is no further poll() after this
    [[nodiscard]] bool spent() const;
};

// Memory size of a body.
std::size_t bytes_of(const JitBody& body);

class JitCode {
public:
    JitCode(std::string proc_root, JitProcess process);

    void want(std::uint64_t address, std::uint64_t time_ns);
    // Samples of this process often have no name, so a missing file justifies a notice.
    void often_unnamed() { often_unnamed_ = true; }
    // Sets a jitdump that the process has mapped since. It contains more than a perf map.
    void found_jitdump(std::string path);
    // Requests one inotify event for the next write to the file.
    void watch(int inotify) const;
    // Continues reading, and appends new answers and notices.
    void poll(const PollTimes& times, JitBudget& budget, std::vector<JitAnswer>& answers,
              std::vector<wire::Notice>& notices);

    // Everything available has been read and answered.
    [[nodiscard]] bool up_to_date() const { return up_to_date_; }
    // The process has been gone for so long that no more samples of it can follow.
    [[nodiscard]] bool over() const { return gone_since_ns_ != 0 && now_ns_ - gone_since_ns_ > 5'000'000'000; }
    [[nodiscard]] std::size_t ranges() const { return code_.size(); }

private:
    // The description of a code range, by its positions in the file.
    struct Place {
        std::uint64_t record = 0, lines = 0, unwinding = 0;
        std::uint64_t moved_by = 0;   // offset from the address in the file, modulo 2^64
        std::uint64_t name_hash = 0;  // set once it was answered
        std::uint64_t from_ns = 0;    // load time of the code; 0: before the file was first read
        [[nodiscard]] bool same_as(const Place& other) const {
            return record == other.record && moved_by == other.moved_by;
        }
    };

    // Code that other code has replaced. Samples of it may still arrive.
    struct Replaced {
        std::uint64_t start = 0, end = 0;
        Place place;
        std::uint64_t until_ns = 0;
    };

    void find_file(const PollTimes& times, std::vector<wire::Notice>& notices);
    bool take_file(const std::string& path, bool jitdump, std::int64_t realtime_ns);
    void read_on(const PollTimes& times, JitBudget& budget, std::vector<JitAnswer>& answers,
                 std::vector<wire::Notice>& notices);
    void restart();
    void add(JitEntry entry, std::vector<JitAnswer>& answers);
    void keep_replaced(const JitEntry& entry);
    [[nodiscard]] const Replaced* replaced_at(std::uint64_t address, std::uint64_t time_ns) const;
    void answer_wants_of_replaced(std::vector<JitAnswer>& answers);
    void answer_wants(std::vector<JitAnswer>& answers);
    void compare_given(std::uint64_t from_ns, std::vector<JitAnswer>& answers);
    bool answer(std::uint64_t start, std::uint64_t end, Place place, std::uint64_t from_ns, std::uint64_t until_ns,
                std::vector<JitAnswer>& answers);
    static Place name_of(Place place);
    [[nodiscard]] std::optional<JitBody> body_of(const Place& place) const;
    [[nodiscard]] wire::Notice no_names() const;

    std::string proc_root_;
    JitProcess process_;
    std::variant<std::monostate, PerfMapFile, JitdumpFile> file_;
    std::string file_path_;
    std::uint64_t device_ = 0, inode_ = 0;
    std::uint64_t now_ns_ = 0, gone_since_ns_ = 0;
    std::uint64_t next_search_ns_ = 0, search_pause_ns_ = 0, first_search_ns_ = 0;
    bool host_root_ = false;  // its root directory is ours, so its paths work here too, even after it exits
    std::uint32_t user_ = 0;  // owner whose files are trusted, besides root
    bool user_known_ = false;
    std::string why_not_;  // most recent reason for the lack of a file
    std::string remedy_;   // … if the remedy is not to write a map
    bool notice_given_ = false, full_notice_given_ = false;
    std::size_t answer_bytes_ = 0;    // remaining JitBudget::answer_bytes of this poll()
    bool answered_in_short_ = false;  // some bodies contain only names

    RangeMap<Place> code_;
    std::deque<Replaced> replaced_;                 // of the last seconds, oldest first
    RangeMap<Place> given_;                         // what was answered: only changes of these are reported
    std::map<std::uint64_t, std::uint64_t> wants_;  // address -> time of the first sample
    bool often_unnamed_ = false;
    std::uint64_t restarted_ns_ = 0;  // the time at which the file was rewritten and reading restarted
    bool up_to_date_ = false;
};

// The remedy for a notice: how to make this process's runtime write the names of its code.
std::string jit_remedy(const JitProcess& process);

}  // namespace flamewire::agent
