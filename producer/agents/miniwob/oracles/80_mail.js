// The inbox in its variants.
const mailTask = () => {
  const said = core.getUtterance();
  if (said.fields) return { task: 'forward', ...said.fields };
  const [by] = asked(/email by (\S+) and/);
  if (/trash/.test(said)) return { task: 'delete', by };
  if (/star/.test(said)) return { task: 'important', by };
  const [to] = asked(/forward that email to (.*)\./);
  return to ? { task: 'forward', by, to } : { task: 'reply', by, message: asked(/text "(.*)"/)[0] };
};

const mail = () => {
  const { task, by, to, message } = mailTask();
  const sender = (thread) => textOf(one('.email-sender', thread));
  const thread = all('#main .email-thread').find((each) => sender(each) === by);
  if (task === 'delete') return click(one('.trash', thread));
  if (task === 'important') return click(one('.star', thread));
  if (one('#reply')) return fill(one('#reply-text'), message) || click(one('#send-reply'));
  if (one('#forward')) return fill(one('.forward-sender'), to) || click(one('#send-forward'));
  if (one('#email')) return click(one(task === 'reply' ? '.email-reply' : '.email-forward'));
  return click(one('.email-subject', thread));
};

Object.assign(ORACLES, {
  'email-inbox': mail,
  'email-inbox-delete': mail,
  'email-inbox-forward': mail,
  'email-inbox-forward-nl': mail,
  'email-inbox-forward-nl-turk': mail,
  'email-inbox-important': mail,
  'email-inbox-nl-turk': mail,
  'email-inbox-noscroll': mail,
  'email-inbox-reply': mail,
  'email-inbox-star-reply': mail,
});
