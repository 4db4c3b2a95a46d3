// Lines and inlined functions of kernel modules: kallsyms says in which function of which module an address is, and the
// module's .ko, where that function is in it. So it needs no addresses of sections, which only root may read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbol/dwarf/dwarf_index.h"
#include "symbol/dwarf/split_dwarf.h"
#include "symbol/types/config.h"
#include "symbol/types/string_pool.h"

namespace flamewire::symbol {

class KernelModules {
public:
    // `strings` must outlive it. Files are looked for when one is first asked for. `sys_modules`: where the build-ids of
    // modules that are loaded now are, "/sys/module".
    KernelModules(const Config& config, std::string release, std::string sys_modules, StringPool& strings);
    ~KernelModules();

    // Appends the frames at `offset` behind the beginning of a module's function (as kallsyms names the two), innermost
    // first, each function followed by " [module]". False: there is no such file with debug info, or it has several
    // functions of that name.
    bool find(const std::string& module, std::string_view function, std::uint64_t offset,
              std::vector<IndexedFrame>& frames);

private:
    struct File;
    void list_files();
    std::unique_ptr<File> open(const std::string& module);

    const Config config_;
    const std::string release_, sys_modules_;
    StringPool& strings_;
    bool listed_ = false;
    std::map<std::string, std::vector<std::string>> places_;  // by module
    std::map<std::string, std::unique_ptr<File>> files_;      // by module; empty: none that serves
};

}  // namespace flamewire::symbol
