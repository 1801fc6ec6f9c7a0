"""The tasks of the `demo` preset."""

PRESET_TASK_IDS: tuple[str, ...] = (
    "train_01_open_settings",
    "train_02_enable_wifi",
    "train_03_max_brightness",
    "train_04_open_chrome",
    "train_05_airplane_mode",
    "train_06_check_battery",
    "train_08_enable_bluetooth",
    "train_09_disable_wifi",
    "train_10_disable_bluetooth",
    "train_12_open_wifi_settings",
    "train_13_open_bluetooth_settings",
    "train_14_open_display_settings",
    "train_15_open_sound_settings",
    "train_22_open_dialer",
    "train_23_open_messages",
    "train_24_open_camera",
    "train_25_open_gallery",
    "train_53_open_contacts",
)
"""Tasks of two or three taps: open an app, open or change a setting. The default policy is warmed
up, trained and evaluated on them.

Left out: sliders, text fields and long scrolling, which need more turns than it has, and tasks that
can be solved without looking (home, recents, shade). Success rates: docs/decisions/policy.md."""
